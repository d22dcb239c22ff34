module {
  func.func @ladder(%in0: tensor<1x8x4x5xi8>, %in1: tensor<8x1x1xi8>) -> (tensor<1x8x4x5xi8>) {
    %c0 = "tosa.const"() {values = dense<16384> : tensor<1xi16>} : () -> tensor<1xi16>
    %c1 = "tosa.const"() {values = dense<14> : tensor<1xi8>} : () -> tensor<1xi8>
    %c2 = "tosa.const"() {values = dense<-8> : tensor<1xi8>} : () -> tensor<1xi8>
    %c3 = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
    %c4 = "tosa.const"() {values = dense<16384> : tensor<1x1x1x1xi32>} : () -> tensor<1x1x1x1xi32>
    %c5 = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
    %c6 = tosa.const_shape {values = dense<[1, 8, 1, 1]> : tensor<4xindex>} : () -> !tosa.shape<4>
    %c7 = "tosa.const"() {values = dense<-128> : tensor<1xi8>} : () -> tensor<1xi8>
    %c8 = "tosa.const"() {values = dense<6554> : tensor<1x1x1x1xi32>} : () -> tensor<1x1x1x1xi32>
    %c9 = "tosa.const"() {values = dense<16718> : tensor<1xi16>} : () -> tensor<1xi16>
    %c10 = "tosa.const"() {values = dense<28> : tensor<1xi8>} : () -> tensor<1xi8>
    %c11 = "tosa.const"() {values = dense<-42> : tensor<1xi8>} : () -> tensor<1xi8>
    // y_unit: Add
    %0 = tosa.rescale %in0, %c0, %c1, %c2, %c3 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x8x4x5xi8>, tensor<1xi16>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<1x8x4x5xi32>
    %1 = tosa.mul %0, %c4, %c5 : (tensor<1x8x4x5xi32>, tensor<1x1x1x1xi32>, tensor<1xi8>) -> tensor<1x8x4x5xi32>
    %3 = tosa.reshape %in1, %c6 : (tensor<8x1x1xi8>, !tosa.shape<4>) -> tensor<1x8x1x1xi8>
    %4 = tosa.rescale %3, %c0, %c1, %c7, %c3 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x8x1x1xi8>, tensor<1xi16>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<1x8x1x1xi32>
    %5 = tosa.mul %4, %c8, %c5 : (tensor<1x8x1x1xi32>, tensor<1x1x1x1xi32>, tensor<1xi8>) -> tensor<1x8x1x1xi32>
    %6 = tosa.add %1, %5 : (tensor<1x8x4x5xi32>, tensor<1x8x1x1xi32>) -> tensor<1x8x4x5xi32>
    %7 = tosa.rescale %6, %c9, %c10, %c3, %c11 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x8x4x5xi32>, tensor<1xi16>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x8x4x5xi8>
    return %7 : tensor<1x8x4x5xi8>
  }
}
