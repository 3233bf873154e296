import psutil
