"""Interception: how the string ``cuda`` reaches the accelerator. One tier is chosen per process.

T0  compiled: hooks the device-string constructor of libc10 (package cuda-morph-native)
T1  ctypes: changes one entry of libc10's device table; no compiler needed
T3  Python wrappers around the functions that take a device; any platform, native view only
"""
