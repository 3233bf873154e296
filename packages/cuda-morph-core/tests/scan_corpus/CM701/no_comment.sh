#!/bin/bash
# CUDA_VISIBLE_DEVICES is set by the scheduler
echo done
