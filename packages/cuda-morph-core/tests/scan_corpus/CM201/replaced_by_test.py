from unittest import mock


def test_without_card(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)  # >> CM201
    with mock.patch("torch.cuda.is_available", return_value=False):  # >> CM201
        print("torch.cuda.is_available")
    with mock.patch("mine.cuda.is_available"):
        pass
