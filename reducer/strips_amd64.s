//go:build amd64 && !purego

#include "textflag.h"

// A strip is eight lines of 64 bytes: w, curvature and u of features 0-7 and 8-15 in float64, x and y in
// float32. Products are rounded before they are added.

// MASK sets K1 to the first n features; it uses AX and CX.
#define MASK(n) \
	MOVQ n, CX \
	MOVL $1, AX \
	SHLL CX, AX \
	DECL AX \
	KMOVW AX, K1

// func open512(node *strip, x, prev *float32, n int, beta float32)
TEXT ·open512(SB), NOSPLIT, $0-36
	MOVQ node+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ prev+16(FP), DX
	MASK(n+24(FP))
	MOVL beta+32(FP), BX
	VXORPS Z5, Z5, Z5
	VMOVUPS.Z (SI), K1, Z0
	VMOVAPS Z0, Z1
	SHLL $1, BX
	TESTL BX, BX
	JZ plain
	VBROADCASTSS beta+32(FP), Z2
	VMOVUPS.Z (DX), K1, Z3
	VSUBPS Z3, Z0, Z3
	VMULPS Z3, Z2, Z3
	VADDPS Z3, Z0, Z1

plain:
	VMOVUPS Z5, (DI)
	VMOVUPS Z5, 64(DI)
	VMOVUPS Z5, 128(DI)
	VMOVUPS Z5, 192(DI)
	VMOVUPS Z5, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z0, 384(DI)
	VMOVUPS Z1, 448(DI)
	VZEROUPPER
	RET

// func add512(sum *[stripWidth]float64, x *float32, n int)
TEXT ·add512(SB), NOSPLIT, $0-24
	MOVQ sum+0(FP), DI
	MOVQ x+8(FP), SI
	MASK(n+16(FP))
	VMOVUPS.Z (SI), K1, Z0
	VEXTRACTF64X4 $1, Z0, Y2
	VCVTPS2PD Y0, Z1
	VCVTPS2PD Y2, Z3
	VADDPD (DI), Z1, Z1
	VADDPD 64(DI), Z3, Z3
	VMOVUPD Z1, (DI)
	VMOVUPD Z3, 64(DI)
	VZEROUPPER
	RET

// func addDegrees512(sum *[stripWidth]float64, code *uint8, n int, degrees *[256]float64)
TEXT ·addDegrees512(SB), NOSPLIT, $0-32
	MOVQ sum+0(FP), DI
	MOVQ code+8(FP), SI
	MASK(n+16(FP))
	MOVQ degrees+24(FP), R8
	VMOVDQU8.Z (SI), K1, X0
	VPMOVZXBD X0, Z0
	VEXTRACTI64X4 $1, Z0, Y1
	KXNORW K2, K2, K2
	KXNORW K3, K3, K3
	VXORPD Z2, Z2, Z2
	VXORPD Z3, Z3, Z3
	VGATHERDPD (R8)(Y0*8), K2, Z2
	VGATHERDPD (R8)(Y1*8), K3, Z3
	VADDPD (DI), Z2, Z2
	VADDPD 64(DI), Z3, Z3
	VMOVUPD Z2, (DI)
	VMOVUPD Z3, 64(DI)
	VZEROUPPER
	RET

DATA one512<>+0(SB)/8, $1.0
GLOBL one512<>(SB), RODATA|NOPTR, $8

// BEGIN is eight features of begin512.
#define BEGIN(w, c, u, y) \
	VMOVUPD c(SI), Z0 \
	VCVTPS2PD y(SI), Z1 \
	VMULPD Z0, Z1, Z1 \
	VADDPD w(SI), Z1, Z1 \
	VMOVUPD Z1, w(SI) \
	VMOVUPD Z0, u(SI) \
	VADDPD Z0, Z31, Z0 \
	VMOVUPD Z0, c(SI)

// func begin512(first *strip, nodes int)
TEXT ·begin512(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), SI
	MOVQ nodes+8(FP), CX
	VBROADCASTSD one512<>(SB), Z31

loop:
	BEGIN(0, 128, 256, 448)
	BEGIN(64, 192, 320, 480)
	ADDQ $512, SI
	DECQ CX
	JNZ loop
	VZEROUPPER
	RET

// ELIMINATE is eight features of a node (SI) and its parent (DI).
#define ELIMINATE(w, c) \
	VDIVPD c(SI), Z31, Z1 \
	VMOVUPD Z1, c(SI) \
	VSUBPD Z1, Z31, Z2 \
	VADDPD c(DI), Z2, Z2 \
	VMOVUPD Z2, c(DI) \
	VMULPD w(SI), Z1, Z3 \
	VADDPD w(DI), Z3, Z3 \
	VMOVUPD Z3, w(DI)

// func eliminate512(all *strip, parent *int32, nodes int)
TEXT ·eliminate512(SB), NOSPLIT, $0-24
	MOVQ all+0(FP), R8
	MOVQ parent+8(FP), R9
	MOVQ nodes+16(FP), CX
	VBROADCASTSD one512<>(SB), Z31
	MOVQ CX, SI
	SHLQ $9, SI
	ADDQ R8, SI

loop:
	MOVLQSX -4(R9)(CX*4), DI
	INCQ DI
	SHLQ $9, DI
	ADDQ R8, DI
	ELIMINATE(0, 128)
	ELIMINATE(64, 192)
	SUBQ $512, SI
	DECQ CX
	JNZ loop
	VZEROUPPER
	RET

// SUBSTITUTE is eight features of a node (SI) and its parent (DI). next is left in Y3; restart and moved
// are sums.
#define SUBSTITUTE(w, c, u, x, y, restart, moved) \
	VMOVUPD w(DI), Z1 \
	VADDPD w(SI), Z1, Z0 \
	VMULPD c(SI), Z0, Z0 \
	VMOVUPD Z0, w(SI) \
	VCVTPD2PS Z0, Y3 \
	VADDPS Y30, Y3, Y3 \
	VCVTPS2PD Y3, Z4 \
	VCVTPS2PD y(SI), Z7 \
	VSUBPD Z4, Z7, Z7 \
	VCVTPS2PD x(SI), Z8 \
	VSUBPD Z8, Z4, Z8 \
	VMULPD u(SI), Z7, Z9 \
	VMULPD Z8, Z9, Z9 \
	VADDPD Z9, restart, restart \
	VCVTPD2PS Z1, Y11 \
	VADDPS Y30, Y11, Y11 \
	VCVTPS2PD Y11, Z11 \
	VCVTPS2PD y(DI), Z12 \
	VSUBPD Z11, Z12, Z12 \
	VSUBPD Z12, Z7, Z7 \
	VCVTPS2PD x(DI), Z13 \
	VSUBPD Z13, Z11, Z13 \
	VSUBPD Z13, Z8, Z8 \
	VMULPD Z7, Z8, Z8 \
	VADDPD Z8, restart, restart \
	VMULPD Z7, Z7, Z7 \
	VADDPD Z7, moved, moved

// func substitute512(all *strip, parent *int32, nodes int, next *float32, width, n int, sums *stripSums)
TEXT ·substitute512(SB), NOSPLIT, $0-56
	MOVQ all+0(FP), R8
	MOVQ parent+8(FP), R9
	MOVQ nodes+16(FP), R10
	MOVQ next+24(FP), R11
	MOVQ width+32(FP), R12
	MASK(n+40(FP))
	MOVQ sums+48(FP), DX
	SHLQ $2, R12
	VXORPS Z30, Z30, Z30
	VMOVUPD (DX), Z20
	VMOVUPD 64(DX), Z21
	VMOVUPD 128(DX), Z22
	VMOVUPD 192(DX), Z23
	LEAQ 512(R8), SI

loop:
	MOVLQSX (R9), DI
	INCQ DI
	SHLQ $9, DI
	ADDQ R8, DI
	SUBSTITUTE(0, 128, 256, 384, 448, Z20, Z22)
	VMOVAPS Y3, Y16
	SUBSTITUTE(64, 192, 320, 416, 480, Z21, Z23)
	VINSERTF64X4 $1, Y3, Z16, Z16
	VMOVUPS Z16, K1, (R11)
	ADDQ R12, R11
	ADDQ $4, R9
	ADDQ $512, SI
	DECQ R10
	JNZ loop
	VMOVUPD Z20, (DX)
	VMOVUPD Z21, 64(DX)
	VMOVUPD Z22, 128(DX)
	VMOVUPD Z23, 192(DX)
	VZEROUPPER
	RET
