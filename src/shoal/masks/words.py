"""Words that stand before names, and capitalised words that are none: English, German, French."""

from __future__ import annotations


def folded(text: str) -> frozenset[str]:
    """Words as they compare: without case, ß as ss.

    >>> folded("Dr Grüße") == {"dr", "grüsse"}
    True
    """
    return frozenset(text.casefold().split())


# with or without a dot
TITLES = folded(
    "mr mrs ms miss mx dr prof sir lady dame lord rev sr jr herr herrn frau fräulein dipl-ing ing mag m mme mlle "
    "monsieur madame mademoiselle maître me docteur professeur doktor professor doctor schwester pfleger nurse "
    "sister brother father captain officer judge richter richterin oberarzt oberärztin chefarzt chefärztin"
)
INSIDE_TITLES = folded("med phil jur rer nat habil h c dr prof")  # as in Prof. Dr. med.

# a person of this kind, then perhaps the name
CUES = folded(
    "patient patientin patiente patienten client cliente kunde kundin customer colleague kollege kollegin "
    "collègue wife husband mother son daughter ehefrau ehemann mutter vater sohn tochter bruder épouse époux mère "
    "père fils fille frère soeur sœur friend freund freundin ami amie neighbour neighbor nachbar nachbarin voisin "
    "voisine tenant mieter mieterin locataire witness zeuge zeugin témoin employee mitarbeiter mitarbeiterin "
    "employé employée student studentin pupil schüler schülerin élève applicant bewerber bewerberin candidat "
    "candidate physician surgeon arzt ärztin hausarzt hausärztin médecin therapist therapeut therapeutin lawyer "
    "anwalt anwältin avocat avocate manager caller anrufer anruferin guest gast driver fahrer fahrerin named "
    "called namens genannt nommé nommée appelé appelée heiße heißt heisse heisst m'appelle s'appelle dear hi "
    "hello hallo liebe lieber bonjour cher chère sincerely regards grüßen gruß grüsse cordialement signed "
    "gezeichnet gez signé name nachname vorname familienname geburtsname surname forename nom prénom contact "
    "kontakt ansprechpartner ansprechpartnerin attn attention zhd from to von an de à by absender empfänger "
    "expéditeur destinataire insured versicherter versicherte assuré assurée owner inhaber inhaberin sender "
    "recipient beneficiary author autor autorin auteur"
)
LABELS = folded("from to von an de à by contact kontakt attention name nom")  # only with a colon behind them

# inside a name, in small letters
PARTICLES = folded(
    "von van der den de del della di da dos du le la el al bin ibn ben ter ten zu zum zur af av y e i und"
)

# people do these things
SPEECH = folded(
    "said says told wrote writes asked asks called calls reported reports replied signed agreed confirmed "
    "complained explained answered phoned emailed visited arrived left lives works was has is had sagt sagte "
    "schrieb fragte rief berichtet berichtete antwortete bestätigte kam ging wohnt arbeitet hat war ist dit a "
    "écrit demande habite est"
)

# what else is written with a capital: the beginnings of sentences, and names of other things
NOT_NAMES = folded(
    # beginnings of sentences
    "the a an this that these those he she it we they i you his her its our their your my who what when where why "
    "how which there here then now today yesterday tomorrow please thank thanks see call send ask tell if in on "
    "at by for with from to of as but and or so after before since until while during because although however "
    "therefore also both each every all some any no not yes one two three four five six seven eight nine ten "
    "first second third last next new old more most many much few only just still never always often again later "
    "soon once is are was were be been has have had do does did will would can could should must may might let "
    "make take give get go come der die das den dem des ein eine einen einem einer eines er sie es wir ihr ich du "
    "sein seine ihre unser unsere mein meine dieser diese dieses jener wer was wann wo warum wie hier dort dann "
    "jetzt heute gestern morgen bitte danke vielen siehe wenn im in am an auf aus bei mit nach seit von vor zu "
    "zum zur für ohne um durch gegen über unter bis als aber und oder so weil obwohl auch beide jede jeder jedes "
    "alle einige kein keine nein ja erste zweite dritte letzte nächste neue neuer neues alte nur noch nie immer "
    "oft wieder später bald ist sind war waren hat haben hatte wird werden kann können soll sollte muss müssen "
    "darf mag sehr geehrte geehrter geehrten damen herren beste besten freundliche freundlichen freundlichem mit "
    "viele liebe lieber guten guter gute le la les un une des du de ce cet cette ces il elle nous vous ils elles "
    "je tu son sa ses notre votre leur mon ma qui que quand où pourquoi comment ici puis maintenant hier demain "
    "merci voir si dans sur chez pour avec sans par après avant depuis pendant mais et ou donc aussi chaque tout "
    "tous toute toutes aucun oui non premier première dernier dernière prochain nouveau nouvelle vieux encore "
    "jamais toujours souvent est sont était a ont avait sera peut doit très cher chère bien cordialement "
    # times
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december spring summer autumn winter easter christmas montag dienstag mittwoch "
    "donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember frühling sommer herbst "
    "ostern weihnachten lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril juin "
    "juillet août septembre octobre novembre décembre noël pâques morning evening night week month year tag woche "
    "monat jahr abend "
    # places, peoples, languages
    "germany france england britain scotland wales ireland spain italy poland austria switzerland belgium "
    "netherlands europe america africa asia australia canada china india japan russia turkey brazil mexico sweden "
    "norway denmark finland greece portugal hungary ukraine united states kingdom republic union deutschland "
    "frankreich österreich schweiz europa amerika london paris berlin york hamburg munich münchen köln cologne "
    "frankfurt stuttgart wien vienna zürich rome madrid lyon marseille bremen leipzig dresden hannover boston "
    "chicago washington california texas north south east west northern southern eastern western nord süd ost "
    "german english french american british european italian spanish polish russian turkish chinese japanese "
    "indian deutsche deutscher deutsches deutschen englische französische français française anglais allemand "
    "allemande bundes "
    # houses, offices, firms
    "hospital clinic klinik klinikum krankenhaus hôpital clinique university universität université school schule "
    "école college institute institut department abteilung service ward station unit center centre zentrum office "
    "büro bureau bank sparkasse insurance versicherung assurance company firma société gmbh ag ltd inc llc sarl "
    "sa kg corp group council court gericht tribunal ministry ministerium ministère police polizei church kirche "
    "église museum library hotel restaurant park platz street straße road avenue lane square station bahnhof "
    "airport flughafen red cross kreuz rotes croix rouge national international federal royal public general "
    "allgemeine allgemeines saint city stadt ville county state land board committee team association verein "
    "foundation stiftung agency amt agence "
    # what letters and notes are about
    "invoice rechnung facture order bestellung commande version release chapter section page seite table figure "
    "note letter brief lettre report bericht rapport form formular room zimmer chambre floor building account "
    "konto compte number nummer numéro date datum phone telefon téléphone mail email fax address adresse iban bic "
    "id case fall dossier ref reference betreff subject objet re cc dear blood pressure heart rate blutdruck puls "
    "temperature temperatur medicine medizin médecine surgery chirurgie internal innere intensive care emergency "
    "notaufnahme radiology cardiology kardiologie neurology neurologie diabetes mellitus typ type covid mri ct "
    "ekg x-ray vitamin aspirin ibuprofen insulin metformin paracetamol mg ml tablet tablets tabletten diagnosis "
    "diagnose diagnostic therapy therapie thérapie treatment behandlung traitement allergy allergie history "
    "anamnese findings befund discharge entlassung admission aufnahme werte wert value values result results "
    "ergebnis ergebnisse test tests labor labour laboratory kind regards sincerely best wishes yours grüße grüßen "
    "gruß windows office word excel internet server project projekt projet data daten système system software "
    "update error fehler erreur contract vertrag contrat policy delivery lieferung livraison payment zahlung "
    "paiement price preis prix euro euros dollar pound january quality control health safety human resources "
    "customer sales marketing finance accounting production research"
)
