#map = affine_map<(d0, d1, d2, d3, d4) -> (d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
module {
  func.func @segment(%arg0: tensor<1x4x4x4xi8>, %arg1: tensor<3x3x4x1xi8>, %arg2: tensor<4xi32>) -> tensor<1x4x4x4xi8> {
    %cst = arith.constant dense<[[1344229], [1469673], [2183855], [2153221]]> : tensor<4x1xi32>
    %c30_i8 = arith.constant 30 : i8
    %c127_i32 = arith.constant 127 : i32
    %c-128_i32 = arith.constant -128 : i32
    %c-5_i32 = arith.constant -5 : i32
    %c3_i32 = arith.constant 3 : i32
    %c0_i32 = arith.constant 0 : i32
    %c3_i8 = arith.constant 3 : i8
    %padded = tensor.pad %arg0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %c3_i8 : i8
    } : tensor<1x4x4x4xi8> to tensor<1x6x6x4xi8>
    %0 = tensor.empty() : tensor<1x4x4x4x1xi32>
    %1 = linalg.fill ins(%c0_i32 : i32) outs(%0 : tensor<1x4x4x4x1xi32>) -> tensor<1x4x4x4x1xi32>
    %2 = linalg.depthwise_conv_2d_nhwc_hwcm_q {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%padded, %arg1, %c3_i32, %c0_i32 : tensor<1x6x6x4xi8>, tensor<3x3x4x1xi8>, i32, i32) outs(%1 : tensor<1x4x4x4x1xi32>) -> tensor<1x4x4x4x1xi32>
    %expanded = tensor.expand_shape %arg2 [[0, 1]] output_shape [4, 1] : tensor<4xi32> into tensor<4x1xi32>
    %3 = tensor.empty() : tensor<1x4x4x4x1xi8>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %2, %cst : tensor<4x1xi32>, tensor<1x4x4x4x1xi32>, tensor<4x1xi32>) outs(%3 : tensor<1x4x4x4x1xi8>) {
    ^bb0(%in: i32, %in_0: i32, %in_1: i32, %out: i8):
      %5 = arith.addi %in, %in_0 : i32
      %6 = tosa.apply_scale %5, %in_1, %c30_i8 {rounding_mode = SINGLE_ROUND} : (i32, i32, i8) -> i32
      %7 = arith.addi %6, %c-5_i32 : i32
      %8 = arith.maxsi %7, %c-128_i32 : i32
      %9 = arith.minsi %8, %c127_i32 : i32
      %10 = arith.trunci %9 : i32 to i8
      linalg.yield %10 : i8
    } -> tensor<1x4x4x4x1xi8>
    %collapsed = tensor.collapse_shape %4 [[0], [1], [2], [3, 4]] : tensor<1x4x4x4x1xi8> into tensor<1x4x4x4xi8>
    return %collapsed : tensor<1x4x4x4xi8>
  }
}
