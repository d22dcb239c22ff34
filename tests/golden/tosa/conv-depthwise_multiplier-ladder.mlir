module {
  func.func @ladder(%in0: tensor<1x8x6x6xi8>, %arg0: tensor<3x3x8x3xi8>, %arg1: tensor<24xi32>) -> (tensor<1x24x6x6xi8>) {
    %c0 = "tosa.const"() {values = dense<-8> : tensor<1xi8>} : () -> tensor<1xi8>
    %c1 = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
    %c2 = "tosa.const"() {values = dense<[7308, 14454, 13238, 7183, 14322, 7055, 14722, 12188, 16491, 7572, 15584, 7579, 10448, 11336, 16873, 12700, 9565, 9387, 16067, 9224, 8177, 9869, 12947, 12615]> : tensor<24xi16>} : () -> tensor<24xi16>
    %c3 = "tosa.const"() {values = dense<22> : tensor<24xi8>} : () -> tensor<24xi8>
    %c4 = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
    %c5 = "tosa.const"() {values = dense<14> : tensor<1xi8>} : () -> tensor<1xi8>
    // y_unit: Conv
    %0 = tosa.transpose %in0 {perms = array<i32: 0, 2, 3, 1>} : (tensor<1x8x6x6xi8>) -> tensor<1x6x6x8xi8>
    %1 = tosa.depthwise_conv2d %0, %arg0, %arg1, %c0, %c1 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x6x6x8xi8>, tensor<3x3x8x3xi8>, tensor<24xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x6x6x24xi32>
    %2 = tosa.rescale %1, %c2, %c3, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x6x6x24xi32>, tensor<24xi16>, tensor<24xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x6x6x24xi8>
    %3 = tosa.transpose %2 {perms = array<i32: 0, 3, 1, 2>} : (tensor<1x6x6x24xi8>) -> tensor<1x24x6x6xi8>
    return %3 : tensor<1x24x6x6xi8>
  }
}
