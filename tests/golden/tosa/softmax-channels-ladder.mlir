module {
  func.func @ladder(%in0: tensor<1x5x4x3xi8>) -> (tensor<1x5x4x3xi8>) {
    %c0 = tosa.const_shape {values = dense<[1, 5, 12]> : tensor<3xindex>} : () -> !tosa.shape<3>
    %c1 = "tosa.const"() {values = dense<16384> : tensor<1xi16>} : () -> tensor<1xi16>
    %c2 = "tosa.const"() {values = dense<14> : tensor<1xi8>} : () -> tensor<1xi8>
    %c3 = "tosa.const"() {values = dense<-128> : tensor<1xi8>} : () -> tensor<1xi8>
    %c4 = "tosa.const"() {values = dense<0> : tensor<1xi32>} : () -> tensor<1xi32>
    %c5 = "tosa.const"() {values = dense<[[[16777216], [15958982], [15180653], [14440284], [13736023], [13066109], [12428867], [11822704], [11246104], [10697625], [10175896], [9679612], [9207531], [8758475], [8331319], [7924996], [7538489], [7170833], [6821107], [6488438], [6171993], [5870981], [5584650], [5312283], [5053200], [4806753], [4572325], [4349330], [4137210], [3935436], [3743503], [3560930], [3387261], [3222063], [3064921], [2915443], [2773255], [2638002], [2509345], [2386963], [2270549], [2159813], [2054478], [1954280], [1858968], [1768305], [1682064], [1600029], [1521995], [1447766], [1377158], [1309993], [1246104], [1185331], [1127521], [1072531], [1020224], [970467], [923136], [878115], [835288], [794551], [755800], [718939], [683876], [650523], [618797], [588618], [559911], [532603], [506628], [481919], [458416], [436059], [414792], [394562], [375319], [357015], [339603], [323040], [307285], [292299], [278043], [264483], [251584], [239314], [227643], [216540], [205980], [195934], [186378], [177288], [168642], [160417], [152593], [145151], [138072], [131338], [124933], [118840], [113044], [107531], [102286], [97298], [92553], [88039], [83745], [79661], [75776], [72080], [68565], [65221], [62040], [59014], [56136], [53398], [50794], [48317], [45960], [43719], [41587], [39558], [37629], [35794], [34048], [32388], [30808], [29306], [27876], [26517], [25224], [23993], [22823], [21710], [20651], [19644], [18686], [17775], [16908], [16083], [15299], [14553], [13843], [13168], [12526], [11915], [11334], [10781], [10255], [9755], [9279], [8827], [8396], [7987], [7597], [7227], [6874], [6539], [6220], [5917], [5628], [5354], [5093], [4844], [4608], [4383], [4169], [3966], [3773], [3589], [3414], [3247], [3089], [2938], [2795], [2659], [2529], [2406], [2288], [2177], [2070], [1969], [1873], [1782], [1695], [1612], [1534], [1459], [1388], [1320], [1256], [1195], [1136], [1081], [1028], [978], [930], [885], [842], [801], [762], [725], [689], [656], [624], [593], [564], [537], [511], [486], [462], [439], [418], [398], [378], [360], [342], [326], [310], [295], [280], [267], [254], [241], [229], [218], [208], [197], [188], [179], [170], [162], [154], [146], [139], [132], [126], [120], [114], [108], [103], [98], [93], [89], [84], [80], [76], [73], [69], [66], [63], [59], [57], [54], [51], [49]]]> : tensor<1x256x1xi32>} : () -> tensor<1x256x1xi32>
    %c6 = tosa.const_shape {values = dense<[1, 60]> : tensor<2xindex>} : () -> !tosa.shape<2>
    %c7 = "tosa.const"() {values = dense<10> : tensor<1x1x1xi32>} : () -> tensor<1x1x1xi32>
    %c8 = "tosa.const"() {values = dense<1> : tensor<1x1x1xi32>} : () -> tensor<1x1x1xi32>
    %c9 = "tosa.const"() {values = dense<15> : tensor<1x1x1xi32>} : () -> tensor<1x1x1xi32>
    %c10 = "tosa.const"() {values = dense<2147483647> : tensor<1x1x1xi32>} : () -> tensor<1x1x1xi32>
    %c11 = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
    %c12 = "tosa.const"() {values = dense<21> : tensor<1x1x1xi32>} : () -> tensor<1x1x1xi32>
    %c13 = "tosa.const"() {values = dense<22> : tensor<1xi8>} : () -> tensor<1xi8>
    %c14 = tosa.const_shape {values = dense<[1, 5, 4, 3]> : tensor<4xindex>} : () -> !tosa.shape<4>
    // y_unit: Softmax
    %0 = tosa.reshape %in0, %c0 : (tensor<1x5x4x3xi8>, !tosa.shape<3>) -> tensor<1x5x12xi8>
    %1 = tosa.rescale %0, %c1, %c2, %c3, %c4 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x5x12xi8>, tensor<1xi16>, tensor<1xi8>, tensor<1xi8>, tensor<1xi32>) -> tensor<1x5x12xi32>
    %2 = tosa.reduce_max %1 {axis = 1 : i32} : (tensor<1x5x12xi32>) -> tensor<1x1x12xi32>
    %3 = tosa.sub %2, %1 : (tensor<1x1x12xi32>, tensor<1x5x12xi32>) -> tensor<1x5x12xi32>
    %4 = tosa.reshape %3, %c6 : (tensor<1x5x12xi32>, !tosa.shape<2>) -> tensor<1x60xi32>
    %5 = tosa.gather %c5, %4 : (tensor<1x256x1xi32>, tensor<1x60xi32>) -> tensor<1x60x1xi32>
    %6 = tosa.reshape %5, %c0 : (tensor<1x60x1xi32>, !tosa.shape<3>) -> tensor<1x5x12xi32>
    %7 = tosa.reduce_sum %6 {axis = 1 : i32} : (tensor<1x5x12xi32>) -> tensor<1x1x12xi32>
    %8 = tosa.clz %7 : (tensor<1x1x12xi32>) -> tensor<1x1x12xi32>
    %9 = tosa.arithmetic_right_shift %6, %c7 {round = true} : (tensor<1x5x12xi32>, tensor<1x1x1xi32>) -> tensor<1x5x12xi32>
    %10 = tosa.sub %8, %c8 : (tensor<1x1x12xi32>, tensor<1x1x1xi32>) -> tensor<1x1x12xi32>
    %11 = tosa.logical_left_shift %7, %10 : (tensor<1x1x12xi32>, tensor<1x1x12xi32>) -> tensor<1x1x12xi32>
    %12 = tosa.arithmetic_right_shift %11, %c9 {round = false} : (tensor<1x1x12xi32>, tensor<1x1x1xi32>) -> tensor<1x1x12xi32>
    %13 = tosa.intdiv %c10, %12 : (tensor<1x1x1xi32>, tensor<1x1x12xi32>) -> tensor<1x1x12xi32>
    %14 = tosa.mul %9, %13, %c11 : (tensor<1x5x12xi32>, tensor<1x1x12xi32>, tensor<1xi8>) -> tensor<1x5x12xi32>
    %15 = tosa.sub %c12, %8 : (tensor<1x1x1xi32>, tensor<1x1x12xi32>) -> tensor<1x1x12xi32>
    %16 = tosa.arithmetic_right_shift %14, %15 {round = true} : (tensor<1x5x12xi32>, tensor<1x1x12xi32>) -> tensor<1x5x12xi32>
    %17 = tosa.rescale %16, %c1, %c13, %c4, %c3 {scale32 = false, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false} : (tensor<1x5x12xi32>, tensor<1xi16>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<1x5x12xi8>
    %18 = tosa.reshape %17, %c14 : (tensor<1x5x12xi8>, !tosa.shape<4>) -> tensor<1x5x4x3xi8>
    return %18 : tensor<1x5x4x3xi8>
  }
}
