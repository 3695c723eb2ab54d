// Decorations that let one header serve nvcc (device and host) and a plain host compiler.
#pragma once

#if defined(__CUDACC__)
#define IL_HD __host__ __device__
#define IL_INLINE __forceinline__
#define IL_UNROLL _Pragma("unroll")
#define IL_NO_UNROLL _Pragma("unroll 1")
#else
#define IL_HD
#define IL_INLINE inline
#define IL_UNROLL
#define IL_NO_UNROLL
#endif
