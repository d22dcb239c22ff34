#map = affine_map<(d0, d1, d2, d3) -> (d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @segment(%arg0: tensor<1x4x4x3xi8>, %arg1: tensor<4x3x3x3xi8>, %arg2: tensor<4xi32>) -> tensor<1x4x4x4xi8> {
    %c30_i8 = arith.constant 30 : i8
    %c127_i32 = arith.constant 127 : i32
    %c-128_i32 = arith.constant -128 : i32
    %c-5_i32 = arith.constant -5 : i32
    %c0_i32 = arith.constant 0 : i32
    %c3_i32 = arith.constant 3 : i32
    %cst = arith.constant dense<[1094596, 1355717, 928787, 793979]> : tensor<4xi32>
    %c3_i8 = arith.constant 3 : i8
    %padded = tensor.pad %arg0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %c3_i8 : i8
    } : tensor<1x4x4x3xi8> to tensor<1x6x6x3xi8>
    %0 = tensor.empty() : tensor<1x4x4x4xi32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<4xi32>) outs(%0 : tensor<1x4x4x4xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<1x4x4x4xi32>
    %2 = linalg.conv_2d_nhwc_fhwc_q {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%padded, %arg1, %c3_i32, %c0_i32 : tensor<1x6x6x3xi8>, tensor<4x3x3x3xi8>, i32, i32) outs(%1 : tensor<1x4x4x4xi32>) -> tensor<1x4x4x4xi32>
    %3 = tensor.empty() : tensor<1x4x4x4xi8>
    %4 = linalg.generic {indexing_maps = [#map1, #map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %cst : tensor<1x4x4x4xi32>, tensor<4xi32>) outs(%3 : tensor<1x4x4x4xi8>) {
    ^bb0(%in: i32, %in_0: i32, %out: i8):
      %5 = tosa.apply_scale %in, %in_0, %c30_i8 {rounding_mode = SINGLE_ROUND} : (i32, i32, i8) -> i32
      %6 = arith.addi %5, %c-5_i32 : i32
      %7 = arith.maxsi %6, %c-128_i32 : i32
      %8 = arith.minsi %7, %c127_i32 : i32
      %9 = arith.trunci %8 : i32 to i8
      linalg.yield %9 : i8
    } -> tensor<1x4x4x4xi8>
    return %4 : tensor<1x4x4x4xi8>
  }
}
