class Settings:
    cudnn = None


Settings.cudnn = True
