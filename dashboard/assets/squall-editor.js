// The editor of profiles: YAML with the errors of the page at their lines, and completion from the schema of the API.
// Without it the page has a plain text area.
'use strict'

{
  const { EditorState, EditorView, HighlightStyle, basicSetup, lintGutter, setDiagnostics, syntaxHighlighting, tags, yaml } = CodeMirror
  const area = document.querySelector('textarea[data-editor]')

  let schema
  const loadSchema = async () => {
    schema ??= await fetch('/openapi.json').then(answer => answer.json())
    return schema
  }

  // The alternatives of a schema: references, `anyOf` and items of lists are followed.
  const alternatives = (all, node) => {
    if (!node || typeof node !== 'object') return []
    if (node.$ref) {
      return alternatives(all, node.$ref.slice(2).split('/').reduce((found, part) => found?.[part], all))
    }
    const nested = [...node.anyOf ?? [], ...node.oneOf ?? [], ...node.allOf ?? [], ...node.items ? [node.items] : []]
    return [node, ...nested.flatMap(one => alternatives(all, one))]
  }
  const members = (all, nodes, key) => nodes.flatMap(node => {
    const found = node.properties?.[key] ?? (node.additionalProperties || undefined)
    return alternatives(all, found)
  })

  // The keys above a line, outermost first; `column` is where its own key begins.
  const keysAbove = (doc, number, column) => {
    const keys = []
    while (--number > 0 && column > 0) {
      const found = /^( *)((?:- +)*)([\w.-]+):/.exec(doc.line(number).text)
      if (!found) continue
      const [, indent, dashes, key] = found
      const begins = indent.length + dashes.length
      if (begins < column) keys.unshift(key)
      // A key may be as far left as the dashes of its list.
      if (dashes && indent.length < column) column = indent.length + 1
      else column = Math.min(column, begins)
    }
    return keys
  }

  const complete = async context => {
    const line = context.state.doc.lineAt(context.pos)
    const before = line.text.slice(0, context.pos - line.from)
    const value = /^( *(?:- +)*)([\w.-]+): *(\w*)$/.exec(before)
    const key = /^( *(?:- +)*)(\w*)$/.exec(before)
    if ((!value && !key) || (key && !key[2] && !context.explicit)) return null
    const all = await loadSchema()
    const [, lead, first, word = first] = value ?? key
    const column = lead.includes('-') ? lead.indexOf('-') + 1 : lead.length
    const above = keysAbove(context.state.doc, line.number, column)
    let nodes = alternatives(all, all.components.schemas.Profile)
    for (const key of value ? [...above, first] : above) nodes = members(all, nodes, key)
    const options = value
      ? nodes.flatMap(node => node.enum ?? (node.type === 'boolean' ? [true, false] : []))
        .filter(one => one !== null).map(one => ({ label: String(one), type: 'enum' }))
      : nodes.flatMap(node => Object.entries(node.properties ?? {}))
        .map(([label, one]) => ({ label, type: 'property', info: one.description, apply: `${label}: ` }))
    const unique = [...new Map(options.map(option => [option.label, option])).values()]
    return unique.length ? { from: context.pos - word.length, options: unique, validFor: /^\w*$/ } : null
  }

  const theme = EditorView.theme({
    '&': { color: 'var(--ink)', backgroundColor: 'var(--card)', border: '1px solid var(--soft)', borderRadius: '.4rem', fontSize: '.9rem' },
    '&.cm-focused': { outline: '3px solid var(--link)', outlineOffset: '2px' },
    '.cm-scroller': { fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace', lineHeight: '1.5', maxHeight: '70vh' },
    '.cm-content, .cm-gutter': { minHeight: '20rem' },
    '.cm-content': { caretColor: 'var(--ink)' },
    '.cm-cursor': { borderLeftColor: 'var(--ink)' },
    '.cm-gutters': { color: 'var(--soft)', backgroundColor: 'var(--paper)', borderRight: '1px solid var(--line)' },
    '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
    '.cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': { backgroundColor: 'var(--idle)' },
    '.cm-tooltip, .cm-panels': { color: 'var(--ink)', backgroundColor: 'var(--card)', border: '1px solid var(--soft)' },
    '.cm-tooltip-autocomplete ul li[aria-selected]': { color: 'var(--card)', backgroundColor: 'var(--link)' },
    '.cm-completionInfo': { maxWidth: '24rem' },
    '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' }
  })
  const colours = HighlightStyle.define([
    { tag: [tags.definition(tags.propertyName), tags.propertyName], color: 'var(--link)' },
    { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
    { tag: [tags.number, tags.bool, tags.keyword], color: 'var(--on)' },
    { tag: [tags.comment, tags.lineComment], color: 'var(--soft)', fontStyle: 'italic' }
  ])

  const start = () => {
    const host = document.createElement('div')
    host.id = 'editor'
    area.before(host)
    // In a shadow tree its styles are no style elements, which the policy of the page forbids.
    const root = host.attachShadow({ mode: 'open' })
    const language = yaml()
    const view = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: area.value,
        extensions: [
          basicSetup, language, language.language.data.of({ autocomplete: complete }), lintGutter(), theme,
          syntaxHighlighting(colours), EditorState.readOnly.of(area.readOnly), EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': 'Profile in YAML' }),
          EditorView.updateListener.of(update => { if (update.docChanged) area.value = update.state.doc.toString() })
        ]
      })
    })
    area.hidden = true
    document.querySelector('label[for="text"]').addEventListener('click', () => view.focus())

    const places = [...document.querySelectorAll('#errors li[data-line]')].map(item => {
      const line = view.state.doc.line(Math.min(Number(item.dataset.line), view.state.doc.lines))
      const from = Math.min(line.from + Number(item.dataset.column) - 1, line.to)
      const word = /^[\w.-]*/.exec(view.state.doc.sliceString(from, line.to))[0]
      return { from, to: from + word.length, severity: 'error', message: item.textContent }
    })
    if (places.length) {
      view.dispatch(setDiagnostics(view.state, places.sort((one, other) => one.from - other.from)))
      view.dispatch({ selection: { anchor: places[0].from }, effects: EditorView.scrollIntoView(places[0].from, { y: 'center' }) })
      view.focus()
    }
  }

  if (area) start()
}
