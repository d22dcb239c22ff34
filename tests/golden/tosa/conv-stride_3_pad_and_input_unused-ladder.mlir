module {
  func.func @ladder(%in0: tensor<1x8x7x7xi8>, %arg0: tensor<16x3x3x8xi8>, %arg1: tensor<16xi32>) -> (tensor<1x16x2x2xi8>) {
    %c0 = tosa.const_shape {values = dense<0> : tensor<4xindex>} : () -> !tosa.shape<4>
    %c1 = tosa.const_shape {values = dense<[1, 6, 6, 8]> : tensor<4xindex>} : () -> !tosa.shape<4>
    %c2 = "tosa.const"() {values = dense<-8> : tensor<1xi8>} : () -> tensor<1xi8>
    %c3 = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
    %c4 = "tosa.const"() {values = dense<[23289, 15840, 15382, 18675, 19449, 19393, 10982, 18247, 20498, 21370, 18344, 11651, 10967, 14464, 23299, 16650]> : tensor<16xi16>} : () -> tensor<16xi16>
    %c5 = "tosa.const"() {values = dense<24> : tensor<16xi8>} : () -> tensor<16xi8>
    %c6 = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
    %c7 = "tosa.const"() {values = dense<14> : tensor<1xi8>} : () -> tensor<1xi8>
    // y_unit: Conv
    %0 = tosa.transpose %in0 {perms = array<i32: 0, 2, 3, 1>} : (tensor<1x8x7x7xi8>) -> tensor<1x7x7x8xi8>
    %1 = tosa.slice %0, %c0, %c1 : (tensor<1x7x7x8xi8>, !tosa.shape<4>, !tosa.shape<4>) -> tensor<1x6x6x8xi8>
    %2 = tosa.conv2d %1, %arg0, %arg1, %c2, %c3 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 3, 3>} : (tensor<1x6x6x8xi8>, tensor<16x3x3x8xi8>, tensor<16xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x2x2x16xi32>
    %3 = tosa.rescale %2, %c4, %c5, %c6, %c7 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x2x2x16xi32>, tensor<16xi16>, tensor<16xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x2x2x16xi8>
    %4 = tosa.transpose %3 {perms = array<i32: 0, 3, 1, 2>} : (tensor<1x2x2x16xi8>) -> tensor<1x16x2x2xi8>
    return %4 : tensor<1x16x2x2xi8>
  }
}
