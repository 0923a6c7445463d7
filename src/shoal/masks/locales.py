"""What fakes are put together from, by locale: common words of a language, numbers nobody has."""

from __future__ import annotations

from typing import Literal, NamedTuple

Language = Literal["en", "de", "fr"]


class Locale(NamedTuple):
    """The parts of invented people of one language. ``phone`` is a range reserved for fiction, ``#`` a digit."""

    given: tuple[str, ...]
    family: tuple[str, ...]
    cities: tuple[str, ...]
    streets: tuple[str, ...]
    companies: tuple[str, ...]
    address: str
    phone: str
    bank: str


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


LOCALES: dict[Language, Locale] = {
    "en": Locale(
        _words(
            "Alice Amy Andrew Anna Ben Carol Charles Daniel David Edward Ellen Emily Emma Frank George Grace "
            "Hannah Harry Helen Henry Jack James Jane John Julia Kate Laura Lucy Mark Martin Mary Michael "
            "Oliver Paul Peter Rachel Robert Rose Ruth Sam Sarah Simon Sophie Susan Thomas Tim Tom William"
        ),
        _words(
            "Adams Allen Baker Barnes Bell Bennett Brooks Brown Carter Clark Cole Cook Cooper Davis Evans "
            "Fisher Foster Gray Green Hall Harris Hill Hughes Hunt Jackson Johnson Jones King Lee Lewis "
            "Marsh Mason Miller Moore Morris Palmer Parker Price Reed Roberts Shaw Smith Stone Taylor Turner "
            "Walker Ward Webb White Wood Wright"
        ),
        _words("Ashford Bexley Carlton Dunmore Eastbury Fairview Granton Hartwell Kingsford Linwood Milbrook"),
        _words("Church Mill Station Park High Victoria Chestnut Bridge School Manor Meadow River"),
        _words("Northgate Bluestone Harbour Oakfield Crestline Summit Pinewood Redbridge Silverline"),
        "{number} {street} Street, {city}",
        # 555-0100 to 555-0199 are kept for fiction (NANPA)
        "(555) 555-01##",
        "GB",
    ),
    "de": Locale(
        _words(
            "Anja Anna Bernd Birgit Christian Claudia Dieter Elke Emma Eva Felix Frank Franz Georg Hans "
            "Heike Helga Ines Jan Jens Jonas Julia Jürgen Karin Katrin Klaus Lena Leon Lukas Maria Markus "
            "Martin Michael Monika Paul Peter Petra Ralf Renate Sabine Silke Stefan Susanne Sven Thomas "
            "Tobias Ulrike Ursula Uwe Werner Wolfgang"
        ),
        _words(
            "Arnold Bauer Beck Becker Berger Böhm Brandt Braun Busch Dietrich Engel Fischer Frank Franke "
            "Fuchs Graf Groß Haas Hahn Hartmann Heinrich Herrmann Hoffmann Huber Jung Kaiser Keller Klein "
            "Koch König Krause Krüger Kuhn Lang Lehmann Lorenz Maier Meyer Müller Neumann Otto Peters Pohl "
            "Richter Roth Sauer Schmidt Schneider Schulz Schwarz Seidel Vogel Voigt Wagner Weber Weiß Werner "
            "Winkler Wolf Zimmermann"
        ),
        _words("Altdorf Birkenau Eichstadt Falkenberg Grünau Hainfeld Königsried Lindental Neuhausen Rosenheim"),
        _words("Haupt Bahnhof Schul Garten Linden Berg Kirch Wald Ring Mühlen Post Rathaus"),
        _words("Nordlicht Adler Rheintal Kompass Eichwerk Silberbach Hansekontor Südstern"),
        "{street}straße {number}, {city}",
        # kept for films by the Bundesnetzagentur
        "030 23125 ###",
        "DE",
    ),
    "fr": Locale(
        _words(
            "Alain Anne Antoine Camille Catherine Cécile Chantal Christophe Claire Denis Didier Émilie Éric "
            "Fabien Françoise Gérard Hélène Hugo Isabelle Jacques Jean Julie Julien Laurent Léa Louis Lucas "
            "Luc Manon Marc Marie Martine Mathieu Michel Monique Nathalie Nicolas Olivier Pascal Patrick "
            "Philippe Pierre Sophie Sylvie Thierry Thomas Valérie Vincent Yves"
        ),
        _words(
            "Bernard Bertrand Blanc Bonnet Boyer Brun Chevalier Clément David Dubois Dufour Dupont Durand "
            "Faure Fontaine Fournier Garnier Gauthier Girard Guérin Henry Lambert Lefebvre Legrand Lemaire "
            "Leroy Marchand Martin Masson Mercier Meunier Michel Moreau Morel Muller Noël Perrin Petit "
            "Renard Richard Rivière Robert Roussel Rousseau Roux Simon Thomas Vidal Vincent"
        ),
        _words("Beaumont Clairval Fontenoy Grandpré Monteval Rochefleur Valfleuri Villeneuve Saint-Aubin"),
        _words("Victor-Hugo Pasteur Gambetta Voltaire Molière Carnot Verdun Moulin Lilas Acacias"),
        _words("Belleroche Lumière Atlantique Horizon Verdier Grandvent Pontclair"),
        "{number} rue {street}, {city}",
        # kept for films by the Arcep
        "01 99 00 ## ##",
        "FR",
    ),
}
