/** What a reference page brings along: its look, its script, and the policy that allows these and nothing else. */
import { createHash } from 'node:crypto'

/** The page's look. It stands in the page itself, so that nothing has to be fetched. */
export const STYLE = `
:root{color-scheme:light dark;--line:light-dark(#d8dce2,#343a44);--soft:light-dark(#f4f6f8,#1c2027);--dim:light-dark(#5b6470,#9aa4b2)}
*{box-sizing:border-box}
body{margin:0;font:16px/1.55 system-ui,sans-serif;background:light-dark(#fff,#14171c);color:light-dark(#1b1f24,#e6e9ee)}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem 5rem;min-width:0}
nav{padding:1rem 1.25rem;font-size:.85rem;border-bottom:1px solid var(--line)}nav ul{list-style:none;margin:.6rem 0;padding:0;max-height:40vh;overflow:auto}
nav li{padding:.1rem 0;overflow-wrap:anywhere}nav input{width:100%;font:inherit;padding:.4rem .6rem;border:1px solid var(--line);border-radius:4px;background:var(--soft);color:inherit}
nav p:empty{display:none}[hidden]{display:none!important}section{scroll-margin-top:1rem}
@media (min-width:64rem){body{display:grid;grid-template-columns:21rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;border-bottom:0;border-right:1px solid var(--line)}nav ul{max-height:none;overflow:visible}}
h1{font-size:1.9rem;margin:0 0 .25rem}h2{margin:3rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}
h3{margin:2.2rem 0 .3rem;font-size:1.05rem}h4{margin:1rem 0 .2rem;font-size:.85rem;color:var(--dim)}
p{margin:.4rem 0}a{color:light-dark(#0b5cad,#7db8ff)}
code,pre{font:.87em/1.5 ui-monospace,monospace;background:var(--soft);border-radius:4px}
code{padding:.1em .3em}pre{padding:.8rem 1rem;overflow-x:auto}
.verb{display:inline-block;min-width:4.2rem;font:600 .8rem ui-monospace,monospace;padding:.2rem .4rem;border-radius:4px;color:#fff;text-align:center}
.get{background:#1f6feb}.post{background:#1a7f37}.delete{background:#b3261e}.head,.options{background:#6e7781}.patch{background:#9a6700}.put{background:#8250df}
details{margin:.2rem 0}summary{cursor:pointer;font-size:.85rem;color:var(--dim)}
.ask{display:grid;gap:.5rem;margin:.6rem 0}.ask label{display:grid;font-size:.85rem;color:var(--dim)}
.ask input,.ask textarea,button{font:.9em/1.5 ui-monospace,monospace;padding:.3rem .5rem;border:1px solid var(--line);border-radius:4px;background:var(--soft);color:inherit}
button{justify-self:start;cursor:pointer;margin:.3rem 0}
table{border-collapse:collapse;width:100%;margin:.3rem 0 .8rem;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line)}
th{color:var(--dim);font-weight:500}.dim{color:var(--dim)}
`

/** Shows the operations whose texts hold every word that was typed; `/` goes to the field, Escape empties it. */
export const SEARCH = `
const field = document.querySelector('nav input')
const status = document.querySelector('nav [role=status]')
const rows = [...document.querySelectorAll('nav li')].map((entry) => {
  const section = document.getElementById(decodeURIComponent(entry.firstChild.hash.slice(1)))
  return { entry, section, text: section.textContent.toLowerCase() }
})
function search() {
  const words = field.value.toLowerCase().split(/\\s+/).filter((word) => word !== '')
  let count = 0
  for (const { entry, section, text } of rows) {
    const isFound = words.every((word) => text.includes(word))
    entry.hidden = section.hidden = !isFound
    if (isFound) count++
  }
  status.textContent = words.length === 0 ? '' : count + ' of ' + rows.length
}
field.hidden = false
field.addEventListener('input', search)
addEventListener('keydown', (event) => {
  if (event.key === '/' && event.target !== field) {
    event.preventDefault()
    field.focus()
  }
  if (event.key === 'Escape' && event.target === field) {
    field.value = ''
    search()
  }
})
`

/** As `SEARCH`, and a form for each operation that says what it is asked with. What was typed leaves the page with a press of `Send` only. */
export const TRY = `${SEARCH}
const make = (name, parts, ...inner) => {
  const element = Object.assign(document.createElement(name), parts)
  element.append(...inner)
  return element
}
let token = ''
const shown = 200000
function labelled(label, value, rows) {
  const input = make(rows === undefined ? 'input' : 'textarea', { value, spellcheck: false })
  if (rows !== undefined) input.rows = rows
  return { input, row: make('label', {}, label, input) }
}
function addressOf({ base, path, query }, values) {
  const filled = path.replace(/[{](\\w+)[}]/g, (_, name) => encodeURIComponent(values.get(name)))
  const pairs = query.filter((name) => values.get(name) !== '').map((name) => [name, values.get(name)])
  return base + filled + (pairs.length === 0 ? '' : '?' + new URLSearchParams(pairs))
}
async function send(request, values, body, out, signal) {
  const headers = new Headers()
  if (token !== '') headers.set('Authorization', 'Bearer ' + token)
  for (const [name, wire] of Object.entries(request.headers)) if (values.get(name) !== '') headers.set(wire, values.get(name))
  if (body !== null && body !== '') headers.set('Content-Type', request.bodyType)
  const init = { method: request.method, headers, body: body === '' ? null : body, signal }
  const response = await fetch(addressOf(request, values), init)
  out.textContent = response.status + ' ' + response.statusText + '\\n'
  const type = response.headers.get('Content-Type') ?? ''
  if (!/json|text|csv/.test(type)) {
    out.textContent += type + ', ' + (await response.arrayBuffer()).byteLength + ' bytes'
    return
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (let part = await reader.read(); !part.done && text.length < shown; part = await reader.read()) {
    text += part.value
    out.textContent += part.value
  }
  await reader.cancel()
  if (!/json/.test(type)) return
  try {
    out.textContent = out.textContent.slice(0, -text.length) + JSON.stringify(JSON.parse(text), null, 2)
  } catch {}
}
function openForm(section, request) {
  const fields = new Map(request.arguments.map(({ name, value }) => [name, labelled(name, value)]))
  const body = request.body === null ? null : labelled('body', request.body, 8)
  const key = request.needsToken ? labelled('token (stays in this page)', token) : null
  if (key !== null) Object.assign(key.input, { type: 'password', autocomplete: 'off' })
  const out = make('pre', { tabIndex: 0, hidden: true })
  const form = make('form', { className: 'ask' }, ...[...fields.values()].map(({ row }) => row))
  for (const each of [body, key]) if (each !== null) form.append(each.row)
  form.append(make('button', { type: 'submit' }, 'Send'), out)
  let under = null
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    under?.abort()
    under = new AbortController()
    if (key !== null) token = key.input.value
    out.hidden = false
    out.textContent = '…'
    const values = new Map([...fields].map(([name, { input }]) => [name, input.value]))
    try {
      await send(request, values, body === null ? null : body.input.value, out, under.signal)
    } catch (error) {
      if (error.name !== 'AbortError') out.textContent += error
    }
  })
  section.append(form)
  form.querySelector('input, textarea, button').focus()
}
for (const section of document.querySelectorAll('section[data-request]')) {
  const button = make('button', { type: 'button', className: 'try' }, 'Try it')
  button.addEventListener('click', () => {
    button.remove()
    openForm(section, JSON.parse(section.dataset.request))
  })
  section.append(button)
}
`

// Only our own style and script, known by their digests; no image, no frame, no form that leads elsewhere.
const digest = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const policy = (script: string, more: string) =>
  `default-src 'none'; style-src ${digest(STYLE)}; script-src ${digest(script)}; ${more}base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
export const POLICY = policy(SEARCH, '')
export const TRY_POLICY = policy(TRY, "connect-src 'self'; ")
