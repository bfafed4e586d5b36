//! `llm_judge`: a model reads the answer. Not here yet, so a suite that asks for it is refused.

use super::Kind;

pub(super) const LLM_JUDGE: Kind = Kind::answer("llm_judge", |fields| {
    fields.words("rubric");
    fields.real("threshold", 0.0..=1.0, "");
    if fields.has("type") {
        let message = "this version has no `llm_judge` yet; write what must hold as `regex`, \
                       `contains_any`, `json_schema` or `similarity`";
        fields.error("type", message);
    }
    None
});

#[cfg(test)]
mod tests {
    use crate::invariants::testing::errors_of;

    #[test]
    fn it_is_refused_and_not_ignored() {
        let errors = errors_of("{type: llm_judge, rubric: polite}");
        assert!(errors[0].contains("no `llm_judge` yet"), "{errors:?}");
    }
}
