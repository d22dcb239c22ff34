module {
  func.func @segment(%arg0: tensor<1x6x7x5xi8>, %arg1: tensor<1x6x7x5xi8>) -> (tensor<1x6x14x5xi8>, tensor<1x6x6x13xi8>, tensor<1x210xi8>, tensor<1x5x4x9xi8>) {
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    %c-9_i8 = arith.constant -9 : i8
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %0 = tensor.empty() : tensor<1x6x14x5xi8>
    %inserted_slice = tensor.insert_slice %arg0 into %0[0, 0, 0, 0] [1, 6, 7, 5] [1, 1, 1, 1] : tensor<1x6x7x5xi8> into tensor<1x6x14x5xi8>
    %inserted_slice_0 = tensor.insert_slice %arg1 into %inserted_slice[0, 0, 7, 0] [1, 6, 7, 5] [1, 1, 1, 1] : tensor<1x6x7x5xi8> into tensor<1x6x14x5xi8>
    %extracted_slice = tensor.extract_slice %inserted_slice_0[0, 1, 2, 0] [1, 4, 9, 5] [1, 1, 1, 1] : tensor<1x6x14x5xi8> to tensor<1x4x9x5xi8>
    %1 = tensor.empty() : tensor<1x5x4x9xi8>
    %transposed = linalg.transpose ins(%extracted_slice : tensor<1x4x9x5xi8>) outs(%1 : tensor<1x5x4x9xi8>) permutation = [0, 3, 1, 2] 
    %padded = tensor.pad %transposed low[%c0, %c1, %c0, %c3] high[%c0, %c0, %c2, %c1] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index):
      tensor.yield %c-9_i8 : i8
    } : tensor<1x5x4x9xi8> to tensor<1x6x6x13xi8>
    %collapsed = tensor.collapse_shape %arg1 [[0], [1, 2, 3]] : tensor<1x6x7x5xi8> into tensor<1x210xi8>
    return %inserted_slice_0, %padded, %collapsed, %transposed : tensor<1x6x14x5xi8>, tensor<1x6x6x13xi8>, tensor<1x210xi8>, tensor<1x5x4x9xi8>
  }
}
