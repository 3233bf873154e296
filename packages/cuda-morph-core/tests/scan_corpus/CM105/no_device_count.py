def f(devices=2, device_count=1):
    return devices + device_count
