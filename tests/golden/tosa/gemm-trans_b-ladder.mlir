module {
  func.func @ladder(%in0: tensor<3x17xi8>, %arg0: tensor<10x1x1x17xi8>, %arg1: tensor<10xi32>) -> (tensor<3x10xi8>) {
    %c0 = tosa.const_shape {values = dense<[1, 1, 3, 17]> : tensor<4xindex>} : () -> !tosa.shape<4>
    %c1 = "tosa.const"() {values = dense<-7> : tensor<1xi8>} : () -> tensor<1xi8>
    %c2 = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
    %c3 = "tosa.const"() {values = dense<[21071, 20720, 24042, 11754, 20989, 23973, 24582, 10247, 23013, 24781]> : tensor<10xi16>} : () -> tensor<10xi16>
    %c4 = "tosa.const"() {values = dense<23> : tensor<10xi8>} : () -> tensor<10xi8>
    %c5 = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
    %c6 = "tosa.const"() {values = dense<14> : tensor<1xi8>} : () -> tensor<1xi8>
    %c7 = tosa.const_shape {values = dense<[3, 10]> : tensor<2xindex>} : () -> !tosa.shape<2>
    // y_unit: Gemm
    %0 = tosa.reshape %in0, %c0 : (tensor<3x17xi8>, !tosa.shape<4>) -> tensor<1x1x3x17xi8>
    %1 = tosa.conv2d %0, %arg0, %arg1, %c1, %c2 {acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<1x1x3x17xi8>, tensor<10x1x1x17xi8>, tensor<10xi32>, tensor<1xi8>, tensor<1xi8>) -> tensor<1x1x3x10xi32>
    %2 = tosa.rescale %1, %c3, %c4, %c5, %c6 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = true, input_unsigned = false, output_unsigned = false} : (tensor<1x1x3x10xi32>, tensor<10xi16>, tensor<10xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x1x3x10xi8>
    %3 = tosa.reshape %2, %c7 : (tensor<1x1x3x10xi8>, !tosa.shape<2>) -> tensor<3x10xi8>
    return %3 : tensor<3x10xi8>
  }
}
