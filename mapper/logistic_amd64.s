//go:build amd64 && !purego

#include "textflag.h"

// A line of a tile is one ZMM register of float32. Sums are float64, lanes 0-7 in Z4 and
// 8-15 in Z5; products of float32 are exact in float64, so that fused additions give
// the bits of separate ones.

// func product512(p, h *[Lanes]float32, n int, sum *[Lanes]float64)
TEXT ·product512(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ h+8(FP), DI
	MOVQ n+16(FP), CX
	MOVQ sum+24(FP), DX
	VXORPD Z4, Z4, Z4
	VXORPD Z5, Z5, Z5
	TESTQ CX, CX
	JZ done

loop:
	VMOVUPS (SI), Z0
	VADDPS (DI), Z0, Z1
	VMOVUPS Z1, (DI)
	VCVTPS2PD Y0, Z2
	VEXTRACTF64X4 $1, Z0, Y6
	VCVTPS2PD Y6, Z3
	VCVTPS2PD Y1, Z7
	VEXTRACTF64X4 $1, Z1, Y8
	VCVTPS2PD Y8, Z9
	VFMADD231PD Z2, Z7, Z4
	VFMADD231PD Z3, Z9, Z5
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ loop

done:
	VMOVUPD Z4, (DX)
	VMOVUPD Z5, 64(DX)
	VZEROUPPER
	RET

// func advance512(p, h, r, d *[Lanes]float32, n int, alpha *[Lanes]float32, sum *[Lanes]float64)
TEXT ·advance512(SB), NOSPLIT, $0-56
	MOVQ p+0(FP), SI
	MOVQ h+8(FP), DI
	MOVQ r+16(FP), R8
	MOVQ d+24(FP), R9
	MOVQ n+32(FP), CX
	MOVQ alpha+40(FP), AX
	MOVQ sum+48(FP), DX
	VMOVUPS (AX), Z10
	VXORPD Z4, Z4, Z4
	VXORPD Z5, Z5, Z5
	TESTQ CX, CX
	JZ done

loop:
	VMULPS (SI), Z10, Z0
	VADDPS (R9), Z0, Z0
	VMOVUPS Z0, (R9)
	VMULPS (DI), Z10, Z1
	VMOVUPS (R8), Z2
	VSUBPS Z1, Z2, Z2
	VMOVUPS Z2, (R8)
	VCVTPS2PD Y2, Z3
	VEXTRACTF64X4 $1, Z2, Y6
	VCVTPS2PD Y6, Z7
	VFMADD231PD Z3, Z3, Z4
	VFMADD231PD Z7, Z7, Z5
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R8
	ADDQ $64, R9
	DECQ CX
	JNZ loop

done:
	VMOVUPD Z4, (DX)
	VMOVUPD Z5, 64(DX)
	VZEROUPPER
	RET

// func turn512(p, r *[Lanes]float32, n int, beta *[Lanes]float32)
TEXT ·turn512(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ r+8(FP), DI
	MOVQ n+16(FP), CX
	MOVQ beta+24(FP), AX
	VMOVUPS (AX), Z10
	TESTQ CX, CX
	JZ done

loop:
	VMULPS (SI), Z10, Z0
	VADDPS (DI), Z0, Z0
	VMOVUPS Z0, (SI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ loop

done:
	VZEROUPPER
	RET

// func times512(m, c *[Lanes]float32, n int)
TEXT ·times512(SB), NOSPLIT, $0-24
	MOVQ m+0(FP), SI
	MOVQ c+8(FP), DI
	MOVQ n+16(FP), CX
	TESTQ CX, CX
	JZ done

loop:
	VMOVUPS (SI), Z0
	VMULPS (DI), Z0, Z0
	VMOVUPS Z0, (SI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ loop

done:
	VZEROUPPER
	RET

// func difference512(a, v, r *[Lanes]float32, n int, norm, size *[Lanes]float64)
TEXT ·difference512(SB), NOSPLIT, $0-48
	MOVQ a+0(FP), SI
	MOVQ v+8(FP), DI
	MOVQ r+16(FP), R8
	MOVQ n+24(FP), CX
	MOVQ norm+32(FP), DX
	MOVQ size+40(FP), R10
	VXORPD Z4, Z4, Z4
	VXORPD Z5, Z5, Z5
	VXORPD Z11, Z11, Z11
	VXORPD Z12, Z12, Z12
	TESTQ CX, CX
	JZ done

loop:
	VMOVUPS (SI), Z0
	VSUBPS (DI), Z0, Z1
	VMOVUPS Z1, (R8)
	VCVTPS2PD Y1, Z2
	VEXTRACTF64X4 $1, Z1, Y6
	VCVTPS2PD Y6, Z3
	VFMADD231PD Z2, Z2, Z4
	VFMADD231PD Z3, Z3, Z5
	VCVTPS2PD Y0, Z7
	VEXTRACTF64X4 $1, Z0, Y8
	VCVTPS2PD Y8, Z9
	VFMADD231PD Z7, Z7, Z11
	VFMADD231PD Z9, Z9, Z12
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R8
	DECQ CX
	JNZ loop

done:
	VMOVUPD Z4, (DX)
	VMOVUPD Z5, 64(DX)
	VMOVUPD Z11, (R10)
	VMOVUPD Z12, 64(R10)
	VZEROUPPER
	RET

// Constants of logistic and expNegative, by offset.
DATA weights<>+0(SB)/4, $0xc2ae0000 // -87
DATA weights<>+4(SB)/4, $0x3fb8aa3b // log2e
DATA weights<>+8(SB)/4, $0x3f000000 // 0.5
DATA weights<>+12(SB)/4, $0x3f318000 // ln2 high
DATA weights<>+16(SB)/4, $0xb95e8083 // ln2 low
DATA weights<>+20(SB)/4, $0x39506967 // p0
DATA weights<>+24(SB)/4, $0x3ab743ce // p1
DATA weights<>+28(SB)/4, $0x3c088908 // p2
DATA weights<>+32(SB)/4, $0x3d2aa9c1 // p3
DATA weights<>+36(SB)/4, $0x3e2aaaaa // p4
DATA weights<>+40(SB)/4, $0x3f000000 // p5
DATA weights<>+44(SB)/4, $0x3f800000 // 1
DATA weights<>+48(SB)/4, $0x40000000 // 2
DATA weights<>+52(SB)/4, $0x3dba2e8c // 1/11
DATA weights<>+56(SB)/4, $0x3de38e39 // 1/9
DATA weights<>+60(SB)/4, $0x3e124925 // 1/7
DATA weights<>+64(SB)/4, $0x3e4ccccd // 1/5
DATA weights<>+68(SB)/4, $0x3eaaaaab // 1/3
DATA weights<>+72(SB)/4, $0x80000000 // sign
DATA weights<>+76(SB)/4, $127
GLOBL weights<>(SB), RODATA|NOPTR, $80

// func weigh512(e *weighArgs)
TEXT ·weigh512(SB), NOSPLIT, $0-8
	MOVQ e+0(FP), BX
	MOVQ 0(BX), SI   // score
	MOVQ 8(BX), DI   // move
	MOVQ 16(BX), R8  // coef
	MOVQ 24(BX), R9  // curve
	MOVQ 32(BX), R10 // pos
	MOVQ 40(BX), CX  // n
	LEAQ weights<>(SB), R11
	VMOVUPS 48(BX), Z31  // C of negative rows
	VMOVUPS 112(BX), Z30 // C of positive rows
	VMOVUPS 176(BX), Z29 // step
	VXORPD Z14, Z14, Z14
	VXORPD Z15, Z15, Z15
	VBROADCASTSS 0(R11), Z16
	VBROADCASTSS 4(R11), Z17
	VBROADCASTSS 8(R11), Z18
	VBROADCASTSS 12(R11), Z19
	VBROADCASTSS 16(R11), Z20
	VBROADCASTSS 20(R11), Z21
	VBROADCASTSS 24(R11), Z22
	VBROADCASTSS 28(R11), Z23
	VBROADCASTSS 32(R11), Z24
	VBROADCASTSS 36(R11), Z25
	VBROADCASTSS 40(R11), Z26
	VBROADCASTSS 44(R11), Z27 // 1
	VBROADCASTSS 72(R11), Z28 // sign
	VPBROADCASTD 76(R11), Z13 // 127
	VXORPS Z12, Z12, Z12
	TESTQ CX, CX
	JZ done

loop:
	MOVWLZX (R10), AX
	KMOVW AX, K1          // positive lanes
	KNOTW K1, K2
	VMULPS (DI), Z29, Z0
	VADDPS (SI), Z0, Z0   // z
	VPXORD Z28, Z0, K2, Z0 // x = y z
	VPORD Z28, Z0, Z1     // u = -|x|
	VCMPPS $0x1e, Z16, Z1, K3 // u > -87
	VCMPPS $0x11, Z12, Z0, K4 // x < 0
	VMULPS Z17, Z1, Z2    // k
	VSUBPS Z18, Z2, Z2
	VCVTTPS2DQ Z2, Z3     // n
	VCVTDQ2PS Z3, Z4      // f
	VMULPS Z19, Z4, Z5
	VSUBPS Z5, Z1, Z6     // r
	VMULPS Z20, Z4, Z5
	VSUBPS Z5, Z6, Z6
	VMULPS Z21, Z6, Z7
	VADDPS Z22, Z7, Z7
	VMULPS Z6, Z7, Z7
	VADDPS Z23, Z7, Z7
	VMULPS Z6, Z7, Z7
	VADDPS Z24, Z7, Z7
	VMULPS Z6, Z7, Z7
	VADDPS Z25, Z7, Z7
	VMULPS Z6, Z7, Z7
	VADDPS Z26, Z7, Z7
	VMULPS Z6, Z6, Z8
	VMULPS Z8, Z7, Z7
	VADDPS Z6, Z7, Z7
	VADDPS Z27, Z7, Z7
	VPADDD Z13, Z3, Z3
	VPSLLD $23, Z3, Z3
	VMULPS.Z Z3, Z7, K3, Z7 // e
	VADDPS Z27, Z7, Z1
	VDIVPS Z1, Z27, Z1    // q
	VMULPS Z7, Z1, Z2     // p = e q
	VADDPS.BCST 48(R11), Z7, Z3
	VDIVPS Z3, Z7, Z3     // r = e / (2+e)
	VMULPS Z3, Z3, Z4     // r2
	VMULPS.BCST 52(R11), Z4, Z5
	VADDPS.BCST 56(R11), Z5, Z5
	VMULPS Z4, Z5, Z5
	VADDPS.BCST 60(R11), Z5, Z5
	VMULPS Z4, Z5, Z5
	VADDPS.BCST 64(R11), Z5, Z5
	VMULPS Z4, Z5, Z5
	VADDPS.BCST 68(R11), Z5, Z5
	VMULPS Z3, Z4, Z6
	VMULPS Z6, Z5, Z5
	VADDPS Z3, Z5, Z5
	VMULPS.BCST 48(R11), Z5, Z5 // loss
	VSUBPS Z0, Z5, K4, Z5
	VBLENDMPS Z1, Z2, K4, Z6 // p: q where x < 0
	VBLENDMPS Z2, Z1, K4, Z7 // q: p where x < 0
	VBLENDMPS Z30, Z31, K1, Z8 // C
	VMULPS Z6, Z8, Z9     // a
	VMULPS Z7, Z9, Z10
	VMOVUPS Z10, (R9)
	VPXORD Z28, Z9, K2, Z9
	VMOVUPS Z9, (R8)
	VMULPS Z5, Z8, Z5
	VCVTPS2PD Y5, Z6
	VEXTRACTF64X4 $1, Z5, Y7
	VCVTPS2PD Y7, Z8
	VADDPD Z6, Z14, Z14
	VADDPD Z8, Z15, Z15
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R8
	ADDQ $64, R9
	ADDQ $2, R10
	DECQ CX
	JNZ loop

done:
	VMOVUPD Z14, 240(BX)
	VMOVUPD Z15, 304(BX)
	VZEROUPPER
	RET
