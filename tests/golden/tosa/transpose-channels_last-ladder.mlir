module {
  func.func @ladder(%in0: tensor<1x8x4x5xi8>) -> (tensor<1x4x5x8xi8>) {
    // y_unit: Transpose
    %0 = tosa.transpose %in0 {perms = array<i32: 0, 2, 3, 1>} : (tensor<1x8x4x5xi8>) -> tensor<1x4x5x8xi8>
    return %0 : tensor<1x4x5x8xi8>
  }
}
