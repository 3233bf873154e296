#pragma once // >> CM502
