"""What a journey costs, in øre (a hundredth of a krone)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from sporvei.calendars import service_weekday
from sporvei.clock import DAY, Window
from sporvei.network import Network
from sporvei.planner import Journey

SPACE = "\N{NO-BREAK SPACE}"
FREE_BELOW = 6
CHILD_BELOW = 16
SENIOR_FROM = 67
GROUP_FROM = 5
GROUP_DISCOUNT = 10


class FareError(ValueError):
    """A fare that can't be told."""


def round_to(amount: int, step: int) -> int:
    """Round an amount that isn't negative to the nearest multiple of `step`, halves up."""
    return (amount + step // 2) // step * step


def percent_of(amount: int, percent: int) -> int:
    """Return that many hundredths of an amount in whole øre, halves up."""
    return round_to(amount * percent, 100) // 100


def format_money(ore: int) -> str:
    """Write an amount the Norwegian way, `kr 1 234,50`, with `,–` for no øre and no-break spaces."""
    kroner, rest = divmod(abs(ore), 100)
    whole = f"{kroner:,}".replace(",", SPACE)
    cents = f"{rest:02}" if rest else "–"
    return f"{'−' if ore < 0 else ''}kr{SPACE}{whole},{cents}"


class Traveller:
    """Someone who travels, with a discount card or none."""

    def __init__(self, age: int, card: str = "") -> None:
        self.age = age
        self.card = card

    @property
    def age(self) -> int:
        """Age in years, from 0 to 130."""
        return self._age

    @age.setter
    def age(self, years: int) -> None:
        if not 0 <= years <= 130:
            raise FareError(f"nobody is [{years}] years old")
        self._age = years

    def category(self) -> str:
        """Return `infant`, `child`, `senior` or `adult`."""
        if self.age < FREE_BELOW:
            return "infant"
        if self.age < CHILD_BELOW:
            return "child"
        return "senior" if self.age >= SENIOR_FROM else "adult"

    def share(self) -> int:
        """Return the percentage of the full fare that they pay; a card is for adults."""
        match self.category(), self.card:
            case "infant", _:
                return 0
            case (("child" | "senior"), _):
                return 50
            case _, "":
                return 100
            case _, "student":
                return 60
            case _, "commuter":
                return 75
            case _, other:
                raise FareError(f"unknown card [{other}]; they are student and commuter")


@dataclass(frozen=True, slots=True)
class Tariff:
    """The rates: a base, an amount for each begun step of distance, and one for each zone after the first.

    In the peak windows of a working day the fare is `peak_percent` dearer. What each traveller pays is
    rounded to `rounding`.
    """

    base: int = 3000
    step_metres: int = 5000
    per_step: int = 800
    per_zone: int = 1100
    peaks: tuple[Window, ...] = (Window(420, 539), Window(930, 1049))
    peak_percent: int = 20
    rounding: int = 100

    def is_peak(self, day: date, departure: int) -> bool:
        """Tell whether a departure falls into a peak; Saturdays, Sundays and holidays have none."""
        return service_weekday(day) < 5 and any(departure % DAY in peak for peak in self.peaks)

    def full_fare(self, network: Network, journey: Journey, day: date) -> int:
        """Return what an adult pays before rounding, for the shortest way between the journey's ends."""
        metres = network.distance(journey.origin, journey.destination)
        zones = network.zones(journey.origin, journey.destination)
        steps = -(-metres // self.step_metres)
        fare = self.base + steps * self.per_step + (len(zones) - 1) * self.per_zone
        if self.is_peak(day, journey.departure):
            fare += percent_of(fare, self.peak_percent)
        return fare


def quote(tariff: Tariff, network: Network, journey: Journey, day: date, traveller: Traveller) -> int:
    """Return what one traveller pays."""
    full = tariff.full_fare(network, journey, day)
    return round_to(percent_of(full, traveller.share()), tariff.rounding)


def quote_party(tariff: Tariff, network: Network, journey: Journey, day: date, party: Iterable[Traveller]) -> int:
    """Return what a party pays; from five paying travellers on, each fare is a tenth lower, rounded again."""
    fares = [quote(tariff, network, journey, day, traveller) for traveller in party]
    paying = [fare for fare in fares if fare]
    if len(paying) < GROUP_FROM:
        return sum(paying)
    return sum(round_to(percent_of(fare, 100 - GROUP_DISCOUNT), tariff.rounding) for fare in paying)
