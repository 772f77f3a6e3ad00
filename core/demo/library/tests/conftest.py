"""A small mountain railway with a branch, a loop by the fjord and a night train."""

import pytest

from sporvei.network import Network, parse_network
from sporvei.timetable import Timetable, parse_timetable

NETWORK = """
station HAV "Havnøy" zone 1 change 5
station BRU "Bruheim" zone 1 change 3
station ELV "Elvestø" zone 2 change 4      # the branch leaves here
station SKA "Skåldal" zone 2
station VIK "Vik" zone 2 change 2
station MJØ "Mjølfjell" zone 3 change 6
station TIN "Tinnåsen" zone 3
station ÅSG "Åsgård" zone 4
station KÆR "Kærvik-Øst" zone 3

track HAV BRU 6.2
track BRU ELV 8.9
track ELV SKA 7.4
track SKA MJØ 11.0
track ELV VIK 4.1
track VIK MJØ 16.0                         # along the fjord: longer, but flat
track MJØ TIN 5.3
track TIN ÅSG 9.8
track VIK KÆR 12.5
"""

TIMETABLE = """
calendar workdays Mo-Fr not 2024-06-14
calendar weekend Sa,Su
calendar daily Mo-Su

trip 11 L1 workdays
  HAV 06:00
  BRU 06:09 06:10
  ELV 06:20 06:22
  SKA 06:32 06:33 [x]
  MJØ 06:47 06:50
  TIN 06:57 [x]
  ÅSG 07:10
repeat every 60 until 09:00

trip 31 L1 weekend
  HAV 08:00
  ELV 08:21 08:23
  MJØ 08:50 08:53
  ÅSG 09:15
repeat every 120 until 12:00

trip 12 L1 daily
  ÅSG 07:30
  MJØ 07:50 07:53
  ELV 08:18 08:20
  BRU 08:30 08:31
  HAV 08:40
repeat every 120 until 11:30

trip 51 L2 daily
  ELV 06:30
  VIK 06:36 06:37
  KÆR 06:52
repeat every 60 until 09:30

trip 71 X1 workdays
  HAV 07:15
  ELV 07:29 07:30
  MJØ 07:50 07:51 [/x]
  ÅSG 08:05

trip 91 N1 daily
  HAV 23:40
  ELV 24:00 24:02
  VIK 24:08 24:09
  MJØ 24:27
"""


@pytest.fixture
def network() -> Network:
    return parse_network(NETWORK)


@pytest.fixture
def timetable(network: Network) -> Timetable:
    return parse_timetable(network, TIMETABLE)
