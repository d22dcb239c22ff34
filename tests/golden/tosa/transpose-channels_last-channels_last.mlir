module {
  func.func @channels_last(%in0: tensor<1x6x7x4xi8>, %arg0: tensor<8x3x3x4xi8>, %arg1: tensor<8xi32>, %arg2: tensor<5x1x1x8xi8>, %arg3: tensor<5xi32>) -> (tensor<1x6x7x5xi8>) {
    %c0 = "tosa.const"() {values = dense<-7> : tensor<1xi8>} : () -> tensor<1xi8>
    %c1 = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
    %c2 = "tosa.const"() {values = dense<[22181, 32586, 14669, 30783, 22364, 30930, 13985, 21324]> : tensor<8xi16>} : () -> tensor<8xi16>
    %c3 = "tosa.const"() {values = dense<24> : tensor<8xi8>} : () -> tensor<8xi8>
    %c4 = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
    %c5 = "tosa.const"() {values = dense<14> : tensor<1xi8>} : () -> tensor<1xi8>
    %c6 = "tosa.const"() {values = dense<[15236, 17339, 29316, 28802, 28105]> : tensor<5xi16>} : () -> tensor<5xi16>
    %c7 = "tosa.const"() {values = dense<23> : tensor<5xi8>} : () -> tensor<5xi8>
    // inside_unit: Transpose
    // first_unit: Conv
    %0 = tosa.conv2d %in0, %arg0, %arg1, %c0, %c1 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<1x6x7x4xi8>, tensor<8x3x3x4xi8>, tensor<8xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x6x7x8xi32>
    %1 = tosa.rescale %0, %c2, %c3, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x6x7x8xi32>, tensor<8xi16>, tensor<8xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x6x7x8xi8>
    %2 = tosa.clamp %1 {min_val = 14 : i8, max_val = 127 : i8} : (tensor<1x6x7x8xi8>) -> tensor<1x6x7x8xi8>
    // second_unit: Conv
    %3 = tosa.conv2d %2, %arg2, %arg3, %c5, %c1 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x6x7x8xi8>, tensor<5x1x1x8xi8>, tensor<5xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x6x7x5xi32>
    %4 = tosa.rescale %3, %c6, %c7, %c4, %c5 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x6x7x5xi32>, tensor<5xi16>, tensor<5xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x6x7x5xi8>
    %5 = tosa.clamp %4 {min_val = 14 : i8, max_val = 127 : i8} : (tensor<1x6x7x5xi8>) -> tensor<1x6x7x5xi8>
    // y_unit: Transpose
    return %5 : tensor<1x6x7x5xi8>
  }
}
