//! How failures are put into words.

use std::sync::LazyLock;

use regex::Regex;

/// Words that tell of a failure wherever they stand. English and the words of clients first.
const SAYINGS: &str = r"
    \b(?: err | errors? | exceptions? | fail | fails | failed | failing | failures? | traceback | unavailable
      | unreachable | inaccessible | unresponsive | unsuccessful(?:ly)? | unauthori[sz]ed | unable | refused
      | time[\ -]?outs? | timed[\ -]out | outages? | offline | overload(?:ed)? | disconnected | crash(?:ed)?
      | malfunction\w* | forbidden | econn\w+ | etimedout | epipe | ehostunreach | enotfound | eai\ again
      | rate\ limit(?:ed|ing)? | too\ many\ requests | internal\ server | bad\ gateway | gateway\ timeout
      | try\ again | went\ wrong | g(?:a|i)ve\ up | giving\ up | out\ of\ (?:service|order) | not\ found
      | hung\ up | hang\ up | broken\ pipe | broke\ off | cut\ (?:off|short) | incomplete\ (?:read|response|answer)
      | reset\ by\ peer | connection\ (?:reset|closed|aborted|lost|broken) | unexpected\ (?:eof|end)
      | no\ (?:answer|response|reply|data|route) | (?:access|permission)\ denied | not\ (?:allowed|permitted)
      | (?:quota|limit)\ (?:exceeded|reached|exhausted)
      | invalid\ (?:answer|response|json|argument|request|api\ key|token)
      | (?:is|was|are|be|been|being|went|currently|temporarily|still|service|server|api)\ down
      | down\ (?:right\ now|for\ maintenance|at\ the\ moment)
      )\b
    | \b(?:not|n['’]t|cannot|can['’]?t|no\ longer|never)\s+(?:\w+\s+){0,2}?
      (?: work\w* | reach\w* | respond\w* | answer\w* | available | accessible | possible | load\w* | connect\w*
      | fetch\w* | retriev\w* | access\w* | complet\w* | succe\w* | search\w* | usable | obtain\w* | process\w* )\b
    | (?:\bcould\s?n(?:o|['’])t|\bcannot|\bcan['’]?t|\bcan\ not|\bnot\ able\ to)\s+(?:\w+\s+){0,2}?
      (?:get|find|found|use|used|call\w*|perform\w*|be\ done|do)\b
    | \b\w+n['’]t\s+(?:\w+\s+){0,2}?(?:work\w*|reach\w*|respond\w*|answer\w*|available|load\w*|connect\w*)\b
    # German
    | \b(?: \w*fehler\w* | fehlgeschlagen | gescheitert | ausgefallen | \w*ausfall | \w*störung\w* | gestört | überlastet
      | überlastung | unerreichbar | zeitüberschreitung | abgelehnt | abgebrochen | verweigert )\b
    | \b(?:nicht|kein\w*)\s(?:\w+\s){0,3}?(?: erreich\w* | verfügbar | möglich | geantwortet | antwort\w* | funktionier\w*
      | geladen | abgerufen | abrufbar | gefunden | geklappt | daten | verbindung | ergebnis\w* )\b
    | \b(?:funktioniert\w*|klappt\w*|geht|ging|antwortet\w*)\s(?:\w+\s){0,2}?nicht\b
    # French
    | \b(?: erreurs? | échec | échou\w+ | indisponible\w* | injoignable\w* | inaccessible\w* | panne | hors\ service
      | impossible | surchargé\w* | délai\ (?:d['’]attente\ )?dépassé )\b
    | \b(?:n['’]|ne\ )\w+\s(?:\w+\s)?(?:pas|plus)\s?(?:\w+\s){0,2}?(?: disponible | répond\w* | fonctionn\w* | accessible
      | joignable | abouti | pu )\b
    | \bne\s(?:répond|fonctionne|marche)\s(?:pas|plus)\b
    # Spanish, Italian, Portuguese
    | \b(?: errores | falló | fallado | fallos? | fracas\w+ | inaccesible | caíd[oa] | sobrecargad\w* | rechazad\w*
      | errore | errori | fallit\w* | guasto | irraggiungibile | sovraccaric\w* | rifiutat\w* | tempo\ scaduto
      | erros? | falh\w+ | indisponível | inacessível | fora\ do\ ar | sobrecarregad\w* | recusad\w* )\b
    | \b(?:no|sin|non|não|nao)\s(?:\w+\s){0,2}?(?: dispon[ií]\w+ | respond\w* | responde | respuesta | risponde | funcion\w*
      | funzion\w* | pudo | puede | accesible | acessível | accessibile | conexión | riuscit\w* | possibile | possível
      | raggiungibile | conseg\w+ )\b
    # Dutch, Scandinavian, Polish, Czech, Finnish, Turkish
    | \b(?: fout\w* | mislukt | storing | onbereikbaar | overbelast | geweigerd
      | misslyck\w+ | mislyk\w+ | otillgänglig\w* | utilgængelig\w* | utilgjengelig\w*
      | błąd | błęd\w+ | niedostępn\w+ | nieosiągaln\w+ | awari\w+ | chyba | nedostupn\w+ | selhal\w*
      | virhe\w* | epäonnistu\w* | hatası | başarısız\w* )\b
    | \bniet\s(?:\w+\s){0,2}?(?:bereik\w*|beschikbaar|mogelijk|gelukt|gevonden)\b
    | \b(?:werkt\w*|reageert)\s(?:\w+\s)?niet\b | \bgeen\s(?:antwoord|verbinding|gegevens)\b
    | \b(?:inte|ikke|ikkje)\s(?:\w+\s){0,2}?(?:tillgänglig\w*|tilgængelig\w*|tilgjengelig\w*|svar\w*|nås?)\b
    | \bnie\s(?:powiodło|działa|odpowiada|można|udało)\b
    # Russian and Ukrainian
    | \b(?: ошиб\w+ | сбо[йяи] | недоступ\w+ | помилк\w+ | отказ\w* | тайм-?аут\w* )\b
    | \bне\s(?:\w+\s){0,2}?(?:доступ\w+|отвечает|работает|удалось|ответил\w*|вдалося|працює)\b
    # Chinese, Japanese, Korean, Arabic
    | 错误|錯誤|失败|失敗|不可用|无法|無法|超时|超時|故障|异常|異常
    | エラー|利用できません|できません|できない|障害|タイムアウト|使えません|応答がありません
    | 오류|에러|실패|불가|장애|응답이\s없
    | خطأ|فشل|غير\sمتاح
";

/// Words that say nothing of a failure, though one of the others stands in them.
const BENIGN: &str = r"
    \b(?:no|not\ an?|without(?:\ any)?|zero|0|free\ of)\ (?:\w+\ )?
      (?:errors?|failures?|exceptions?|outages?|crash(?:es)?|timeouts?)\b
    | \b(?:did|does|do|has|have|was|were)(?:\ not|n['’]t)\ (?:\w+\ )?(?:fail(?:ed)?|crash(?:ed)?|time[d]?\ out)\b
    | \bnever\ (?:fail(?:ed|s)?|crash(?:ed|es)?)\b
    | \berror[\ -]free\b | \bfail[\ -]?(?:safe|over|proof)s?\b | \bmargins?\ of\ error\b | \berror\ (?:margins?|bars?)\b
    | \bstandard\ errors?\b | \btrial\ and\ error\b
    | \b(?:errors?|failures?|failed|exceptions?)\ ?[:=]\ ?(?:0|none|null|nil|no|false|n/a|\[\ *\]|\{\ *\})
    | \b(?:keine?|ohne)\ (?:fehler|störung(?:en)?|ausfälle?)\b | \b(?:sans|aucune?)\ (?:erreur|panne|échec)s?\b
    | \b(?:sin|ningún|sem|senza|nessun)\ (?:error(?:es)?|fallos?|erros?|falhas?|errore|errori)\b
    | \bgeen\ (?:fout\w*|storing\w*)\b
";

/// Words that may tell of a failure, and may tell of anything else.
const HINTS: &str = r"
    \b(?: sorry | unfortunately | apolog\w+ | later | busy | maintenance | problems? | trouble | issues? | missing | unknown
      | invalid | denied | rejected | wrong | retry | retries | retrying | closed | limit | quota | exceeded | throttl\w+
      | expired | abort\w* | interrupt\w* | cancel\w* | incomplete | partial\w* | unexpected | malformed | corrupt\w*
      | broken | bad | degraded | reset | lost | cannot | leider | malheureusement | désolé\w* | lamentablemente | purtroppo
      | infelizmente | helaas | niestety | tyvärr | desværre | dessverre | к\ сожалению )\b
    | 抱歉|对不起|申し訳|죄송
";

fn compiled(pattern: &str) -> Regex {
    Regex::new(&format!("(?ix){pattern}")).expect("a constant pattern")
}

static SAYS: LazyLock<Regex> = LazyLock::new(|| compiled(SAYINGS));
static IS_BENIGN: LazyLock<Regex> = LazyLock::new(|| compiled(BENIGN));
static HINTS_AT: LazyLock<Regex> = LazyLock::new(|| compiled(HINTS));

/// A number of a failed answer behind a word for statuses.
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\b(?:http(?:/\d(?:\.\d)?)?|status)\W{0,3}(?:code|status|is|was|of)?\W{0,3}[45]\d\d\b",
    )
});

/// The same behind a word that may be for anything, or alone.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"\b(?:code|got|gave|returned|answered|responded|response|replied|received)\W{0,3}(?:code|with|an?|of|is|was)?
          \W{0,3}([45]\d\d)\b
          | ^\W*([45]\d\d)\W*$",
    )
});

/// Whether a text says that something failed.
pub(super) fn says(text: &str) -> bool {
    let parted = parted(text);
    SAYS.is_match(&IS_BENIGN.replace_all(&parted, " "))
}

/// Whether there is a word in it that may mean so.
pub(super) fn hints(text: &str) -> bool {
    HINTS_AT.is_match(&parted(text))
}

/// Whether a text names the status of a failed answer as one, or this one.
pub(super) fn names_a_status(text: &str, own: Option<u16>) -> bool {
    let is_own = |number: &str| own.is_some_and(|own| number == own.to_string());
    let mut numbers = NUMBER.captures_iter(text);
    STATUS.is_match(text)
        || numbers.any(|found| {
            let number = found.get(1).or_else(|| found.get(2));
            number.is_some_and(|number| is_own(number.as_str()))
        })
}

/// Whether a member for a status says that something failed.
pub(super) fn is_status_of_failure(written: &str) -> bool {
    let written = written.trim().to_lowercase();
    ["down", "ko", "nok", "timeout", "not ok"].contains(&written.as_str()) || says(&written)
}

/// Whether it is in letters of the languages whose words are known well enough to miss them.
pub(super) fn is_legible(text: &str) -> bool {
    const KNOWN: &str = "äöüßàâçéèêëîïôûùœæñáíóúìòãõåøąćęłńśźżěščřžýůďťň";
    let mut letters = text.chars().filter(|c| c.is_alphabetic());
    letters.all(|letter| {
        letter.is_ascii_alphabetic() || letter.to_lowercase().all(|lower| KNOWN.contains(lower))
    })
}

/// A text in which names of code are parted into their words: `HTTPStatusError`, `SEARCH_OUTAGE`.
fn parted(text: &str) -> String {
    let mut parted = String::with_capacity(text.len() + 8);
    let mut was_lower = false;
    for letter in text.chars() {
        if letter == '_' {
            parted.push(' ');
        } else {
            if was_lower && letter.is_uppercase() {
                parted.push(' ');
            }
            parted.push(letter);
        }
        was_lower = letter.is_lowercase();
    }
    parted
}
