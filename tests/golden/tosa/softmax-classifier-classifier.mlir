module {
  func.func @classifier(%in0: tensor<1x3x8x8xi8>, %arg0: tensor<8x3x3x3xi8>, %arg1: tensor<8xi32>, %arg2: tensor<8x3x3x8xi8>, %arg3: tensor<8xi32>, %arg4: tensor<3x3x8x1xi8>, %arg5: tensor<8xi32>, %arg6: tensor<16x1x1x8xi8>, %arg7: tensor<16xi32>, %arg8: tensor<10x1x1x16xi8>, %arg9: tensor<10xi32>) -> (tensor<1x10xi8>) {
    %c0 = "tosa.const"() {values = dense<-8> : tensor<1xi8>} : () -> tensor<1xi8>
    %c1 = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
    %c2 = "tosa.const"() {values = dense<[8439, 16690, 15286, 8294, 16538, 8146, 17000, 14074]> : tensor<8xi16>} : () -> tensor<8xi16>
    %c3 = "tosa.const"() {values = dense<23> : tensor<8xi8>} : () -> tensor<8xi8>
    %c4 = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
    %c5 = "tosa.const"() {values = dense<14> : tensor<1xi8>} : () -> tensor<1xi8>
    %c6 = "tosa.const"() {values = dense<[19539, 19869, 12136, 10092, 10701, 23838, 19180, 23582]> : tensor<8xi16>} : () -> tensor<8xi16>
    %c7 = "tosa.const"() {values = dense<24> : tensor<8xi8>} : () -> tensor<8xi8>
    %c8 = "tosa.const"() {values = dense<16384> : tensor<1xi16>} : () -> tensor<1xi16>
    %c9 = "tosa.const"() {values = dense<2379> : tensor<1x1x1x1xi32>} : () -> tensor<1x1x1x1xi32>
    %c10 = "tosa.const"() {values = dense<16384> : tensor<1x1x1x1xi32>} : () -> tensor<1x1x1x1xi32>
    %c11 = "tosa.const"() {values = dense<28614> : tensor<1xi16>} : () -> tensor<1xi16>
    %c12 = "tosa.const"() {values = dense<29> : tensor<1xi8>} : () -> tensor<1xi8>
    %c13 = "tosa.const"() {values = dense<[24456, 26044, 31597, 22835, 32220, 26463, 30920, 24073]> : tensor<8xi16>} : () -> tensor<8xi16>
    %c14 = "tosa.const"() {values = dense<[17403, 9563, 16634, 9160, 17878, 14144, 13959, 17946, 15934, 15966, 7900, 11355, 8238, 9429, 9652, 16719]> : tensor<16xi16>} : () -> tensor<16xi16>
    %c15 = "tosa.const"() {values = dense<22> : tensor<16xi8>} : () -> tensor<16xi8>
    %c16 = tosa.const_shape {values = dense<16> : tensor<2xindex>} : () -> !tosa.shape<2>
    %c17 = "tosa.const"() {values = dense<18> : tensor<1xi8>} : () -> tensor<1xi8>
    %c18 = tosa.const_shape {values = dense<[1, 1, 1, 16]> : tensor<4xindex>} : () -> !tosa.shape<4>
    %c19 = "tosa.const"() {values = dense<[22080, 18045, 18539, 22515, 16762, 21720, 21358, 24782, 12116, 21635]> : tensor<10xi16>} : () -> tensor<10xi16>
    %c20 = "tosa.const"() {values = dense<23> : tensor<10xi8>} : () -> tensor<10xi8>
    %c21 = tosa.const_shape {values = dense<[1, 10]> : tensor<2xindex>} : () -> !tosa.shape<2>
    %c22 = "tosa.const"() {values = dense<-128> : tensor<1xi8>} : () -> tensor<1xi8>
    %c23 = "tosa.const"() {values = dense<[[[16777216], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0]]]> : tensor<1x256x1xi32>} : () -> tensor<1x256x1xi32>
    %c24 = "tosa.const"() {values = dense<10> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %c25 = "tosa.const"() {values = dense<1> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %c26 = "tosa.const"() {values = dense<15> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %c27 = "tosa.const"() {values = dense<2147483647> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %c28 = "tosa.const"() {values = dense<21> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %c29 = "tosa.const"() {values = dense<22> : tensor<1xi8>} : () -> tensor<1xi8>
    // stem_unit: Conv
    %0 = tosa.transpose %in0 {perms = array<i32: 0, 2, 3, 1>} : (tensor<1x3x8x8xi8>) -> tensor<1x8x8x3xi8>
    %1 = tosa.conv2d %0, %arg0, %arg1, %c0, %c1 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x8x8x3xi8>, tensor<8x3x3x3xi8>, tensor<8xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x8x8x8xi32>
    %2 = tosa.rescale %1, %c2, %c3, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x8x8x8xi32>, tensor<8xi16>, tensor<8xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x8x8x8xi8>
    %3 = tosa.clamp %2 {min_val = 14 : i8, max_val = 127 : i8} : (tensor<1x8x8x8xi8>) -> tensor<1x8x8x8xi8>
    // body_unit: Conv
    %4 = tosa.conv2d %3, %arg2, %arg3, %c5, %c1 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x8x8x8xi8>, tensor<8x3x3x8xi8>, tensor<8xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x8x8x8xi32>
    %5 = tosa.rescale %4, %c6, %c7, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x8x8x8xi32>, tensor<8xi16>, tensor<8xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x8x8x8xi8>
    // block_unit: Add
    %6 = tosa.rescale %3, %c8, %c5, %c5, %c4 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x8x8x8xi8>, tensor<1xi16>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<1x8x8x8xi32>
    %7 = tosa.mul %6, %c9, %c1 : (tensor<1x8x8x8xi32>, tensor<1x1x1x1xi32>, tensor<1xi8>) -> tensor<1x8x8x8xi32>
    %8 = tosa.rescale %5, %c8, %c5, %c5, %c4 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x8x8x8xi8>, tensor<1xi16>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<1x8x8x8xi32>
    %9 = tosa.mul %8, %c10, %c1 : (tensor<1x8x8x8xi32>, tensor<1x1x1x1xi32>, tensor<1xi8>) -> tensor<1x8x8x8xi32>
    %10 = tosa.add %7, %9 : (tensor<1x8x8x8xi32>, tensor<1x8x8x8xi32>) -> tensor<1x8x8x8xi32>
    %11 = tosa.rescale %10, %c11, %c12, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x8x8x8xi32>, tensor<1xi16>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x8x8x8xi8>
    %12 = tosa.clamp %11 {min_val = 14 : i8, max_val = 127 : i8} : (tensor<1x8x8x8xi8>) -> tensor<1x8x8x8xi8>
    // deep_unit: Conv
    %13 = tosa.depthwise_conv2d %12, %arg4, %arg5, %c5, %c1 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 0, 1, 0>, stride = array<i64: 2, 2>} : (tensor<1x8x8x8xi8>, tensor<3x3x8x1xi8>, tensor<8xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x4x4x8xi32>
    %14 = tosa.rescale %13, %c13, %c3, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x4x4x8xi32>, tensor<8xi16>, tensor<8xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x4x4x8xi8>
    %15 = tosa.clamp %14 {min_val = 14 : i8, max_val = 15 : i8} : (tensor<1x4x4x8xi8>) -> tensor<1x4x4x8xi8>
    // wide_unit: Conv
    %16 = tosa.conv2d %15, %arg6, %arg7, %c5, %c1 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x4x4x8xi8>, tensor<16x1x1x8xi8>, tensor<16xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x4x4x16xi32>
    %17 = tosa.rescale %16, %c14, %c15, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x4x4x16xi32>, tensor<16xi16>, tensor<16xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x4x4x16xi8>
    %18 = tosa.clamp %17 {min_val = 14 : i8, max_val = 15 : i8} : (tensor<1x4x4x16xi8>) -> tensor<1x4x4x16xi8>
    // pooled_unit: GlobalAveragePool
    %19 = tosa.reshape %18, %c16 : (tensor<1x4x4x16xi8>, !tosa.shape<2>) -> tensor<16x16xi8>
    %20 = tosa.rescale %19, %c8, %c5, %c5, %c4 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<16x16xi8>, tensor<1xi16>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<16x16xi32>
    %21 = tosa.reduce_sum %20 {axis = 0 : i32} : (tensor<16x16xi32>) -> tensor<1x16xi32>
    %22 = tosa.rescale %21, %c8, %c17, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x16xi32>, tensor<1xi16>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x16xi8>
    // flat_unit: Flatten
    // logits_unit: Gemm
    %24 = tosa.reshape %22, %c18 : (tensor<1x16xi8>, !tosa.shape<4>) -> tensor<1x1x1x16xi8>
    %25 = tosa.conv2d %24, %arg8, %arg9, %c5, %c1 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x1x1x16xi8>, tensor<10x1x1x16xi8>, tensor<10xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x1x1x10xi32>
    %26 = tosa.rescale %25, %c19, %c20, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x1x1x10xi32>, tensor<10xi16>, tensor<10xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x1x1x10xi8>
    // y_unit: Softmax
    %28 = tosa.reshape %26, %c21 : (tensor<1x1x1x10xi8>, !tosa.shape<2>) -> tensor<1x10xi8>
    %29 = tosa.rescale %28, %c8, %c5, %c22, %c4 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x10xi8>, tensor<1xi16>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<1x10xi32>
    %30 = tosa.reduce_max %29 {axis = 1 : i32} : (tensor<1x10xi32>) -> tensor<1x1xi32>
    %31 = tosa.sub %30, %29 : (tensor<1x1xi32>, tensor<1x10xi32>) -> tensor<1x10xi32>
    %32 = tosa.gather %c23, %31 : (tensor<1x256x1xi32>, tensor<1x10xi32>) -> tensor<1x10x1xi32>
    %33 = tosa.reshape %32, %c21 : (tensor<1x10x1xi32>, !tosa.shape<2>) -> tensor<1x10xi32>
    %34 = tosa.reduce_sum %33 {axis = 1 : i32} : (tensor<1x10xi32>) -> tensor<1x1xi32>
    %35 = tosa.clz %34 : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %36 = tosa.arithmetic_right_shift %33, %c24 {round = true} : (tensor<1x10xi32>, tensor<1x1xi32>) -> tensor<1x10xi32>
    %37 = tosa.sub %35, %c25 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %38 = tosa.logical_left_shift %34, %37 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %39 = tosa.arithmetic_right_shift %38, %c26 {round = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %40 = tosa.intdiv %c27, %39 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %41 = tosa.mul %36, %40, %c1 : (tensor<1x10xi32>, tensor<1x1xi32>, tensor<1xi8>) -> tensor<1x10xi32>
    %42 = tosa.sub %c28, %35 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %43 = tosa.arithmetic_right_shift %41, %42 {round = true} : (tensor<1x10xi32>, tensor<1x1xi32>) -> tensor<1x10xi32>
    %44 = tosa.rescale %43, %c8, %c29, %c4, %c22 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x10xi32>, tensor<1xi16>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x10xi8>
    return %44 : tensor<1x10xi8>
  }
}
