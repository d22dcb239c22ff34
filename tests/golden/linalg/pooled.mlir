#map = affine_map<(d0, d1, d2, d3) -> (d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>
#map3 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>
#map4 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d3, d4, d5)>
#map5 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
module {
  func.func @segment(%arg0: tensor<1x8x8x16xi8>, %arg1: tensor<40x3x3x16xi8>, %arg2: tensor<40xi32>, %arg3: tensor<10x1x1x40xi8>, %arg4: tensor<10xi32>) -> tensor<1x10xi8> {
    %cst = arith.constant dense<[[591101, 596973, 550216, 558775, 357909, 504984, 522220, 372915, 617113, 547615, 360511, 366584, 360647, 374129, 519532, 358680, 460392, 421137, 540386, 559594, 535419, 521383, 508569, 577654, 490620, 396769, 362558, 522899, 589884, 561333, 558112, 580788, 353160, 604827, 337021, 509668, 462581, 369864, 514100, 364380]]> : tensor<1x40xi32>
    %c30_i8 = arith.constant 30 : i8
    %c20_i8 = arith.constant 20 : i8
    %c17000_i32 = arith.constant 17000 : i32
    %c14_i8 = arith.constant 14 : i8
    %c16384_i32 = arith.constant 16384 : i32
    %c127_i32 = arith.constant 127 : i32
    %c-128_i32 = arith.constant -128 : i32
    %c-5_i32 = arith.constant -5 : i32
    %c0_i32 = arith.constant 0 : i32
    %c3_i32 = arith.constant 3 : i32
    %cst_0 = arith.constant dense<[913758, 732686, 1115499, 1001292, 795623, 1223451, 834157, 1036285, 1074709, 784521]> : tensor<10xi32>
    %c3_i8 = arith.constant 3 : i8
    %padded = tensor.pad %arg0 low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %c3_i8 : i8
    } : tensor<1x8x8x16xi8> to tensor<1x10x10x16xi8>
    %0 = tensor.empty() : tensor<1x8x8x40xi32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<40xi32>) outs(%0 : tensor<1x8x8x40xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<1x8x8x40xi32>
    %2 = linalg.conv_2d_nhwc_fhwc_q {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%padded, %arg1, %c3_i32, %c0_i32 : tensor<1x10x10x16xi8>, tensor<40x3x3x16xi8>, i32, i32) outs(%1 : tensor<1x8x8x40xi32>) -> tensor<1x8x8x40xi32>
    %3 = tensor.empty() : tensor<1x8x40xi32>
    %expanded = tensor.expand_shape %3 [[0], [1, 2], [3, 4]] output_shape [1, 1, 8, 1, 40] : tensor<1x8x40xi32> into tensor<1x1x8x1x40xi32>
    %4 = linalg.fill ins(%c0_i32 : i32) outs(%expanded : tensor<1x1x8x1x40xi32>) -> tensor<1x1x8x1x40xi32>
    %expanded_1 = tensor.expand_shape %2 [[0], [1], [2, 3], [4, 5]] output_shape [1, 8, 1, 8, 1, 40] : tensor<1x8x8x40xi32> into tensor<1x8x1x8x1x40xi32>
    %5 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "reduction", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_1, %cst : tensor<1x8x1x8x1x40xi32>, tensor<1x40xi32>) outs(%4 : tensor<1x1x8x1x40xi32>) {
    ^bb0(%in: i32, %in_3: i32, %out: i32):
      %16 = tosa.apply_scale %in, %in_3, %c30_i8 {rounding_mode = SINGLE_ROUND} : (i32, i32, i8) -> i32
      %17 = arith.addi %16, %c-5_i32 : i32
      %18 = arith.maxsi %17, %c-128_i32 : i32
      %19 = arith.minsi %18, %c127_i32 : i32
      %20 = arith.trunci %19 : i32 to i8
      %21 = arith.extsi %20 : i8 to i32
      %22 = arith.subi %21, %c-5_i32 : i32
      %23 = tosa.apply_scale %22, %c16384_i32, %c14_i8 {rounding_mode = SINGLE_ROUND} : (i32, i32, i8) -> i32
      %24 = arith.addi %23, %out : i32
      linalg.yield %24 : i32
    } -> tensor<1x1x8x1x40xi32>
    %6 = tensor.empty() : tensor<1x1x40xi32>
    %expanded_2 = tensor.expand_shape %6 [[0], [1], [2, 3]] output_shape [1, 1, 1, 40] : tensor<1x1x40xi32> into tensor<1x1x1x40xi32>
    %7 = linalg.fill ins(%c0_i32 : i32) outs(%expanded_2 : tensor<1x1x1x40xi32>) -> tensor<1x1x1x40xi32>
    %8 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "reduction", "parallel", "parallel"]} ins(%5 : tensor<1x1x8x1x40xi32>) outs(%7 : tensor<1x1x1x40xi32>) {
    ^bb0(%in: i32, %out: i32):
      %16 = arith.addi %in, %out : i32
      linalg.yield %16 : i32
    } -> tensor<1x1x1x40xi32>
    %9 = tensor.empty() : tensor<1x1x1x40xi8>
    %10 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<1x1x1x40xi32>) outs(%9 : tensor<1x1x1x40xi8>) {
    ^bb0(%in: i32, %out: i8):
      %16 = tosa.apply_scale %in, %c17000_i32, %c20_i8 {rounding_mode = SINGLE_ROUND} : (i32, i32, i8) -> i32
      %17 = arith.addi %16, %c3_i32 : i32
      %18 = arith.maxsi %17, %c-128_i32 : i32
      %19 = arith.minsi %18, %c127_i32 : i32
      %20 = arith.trunci %19 : i32 to i8
      linalg.yield %20 : i8
    } -> tensor<1x1x1x40xi8>
    %11 = tensor.empty() : tensor<1x1x1x10xi32>
    %12 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg4 : tensor<10xi32>) outs(%11 : tensor<1x1x1x10xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<1x1x1x10xi32>
    %13 = linalg.conv_2d_nhwc_fhwc_q {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%10, %arg3, %c3_i32, %c0_i32 : tensor<1x1x1x40xi8>, tensor<10x1x1x40xi8>, i32, i32) outs(%12 : tensor<1x1x1x10xi32>) -> tensor<1x1x1x10xi32>
    %14 = tensor.empty() : tensor<1x1x1x10xi8>
    %15 = linalg.generic {indexing_maps = [#map1, #map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13, %cst_0 : tensor<1x1x1x10xi32>, tensor<10xi32>) outs(%14 : tensor<1x1x1x10xi8>) {
    ^bb0(%in: i32, %in_3: i32, %out: i8):
      %16 = tosa.apply_scale %in, %in_3, %c30_i8 {rounding_mode = SINGLE_ROUND} : (i32, i32, i8) -> i32
      %17 = arith.addi %16, %c-5_i32 : i32
      %18 = arith.maxsi %17, %c-128_i32 : i32
      %19 = arith.minsi %18, %c127_i32 : i32
      %20 = arith.trunci %19 : i32 to i8
      linalg.yield %20 : i8
    } -> tensor<1x1x1x10xi8>
    %collapsed = tensor.collapse_shape %15 [[0, 1, 2], [3]] : tensor<1x1x1x10xi8> into tensor<1x10xi8>
    return %collapsed : tensor<1x10xi8>
  }
}
