/**
 * An API reference as one page, made from its OpenAPI document on the server: no request to anywhere, and one short script of our own, for
 * the search; everything else works without it. What the document says is shown as text, never as markup.
 */
import { createHash } from 'node:crypto'
import type { FastifyReply } from 'fastify'

interface Route {
  readonly method: string
  readonly path: string
  readonly operation: OperationNode
}

interface PageOptions {
  /** Of the document for machines. */
  readonly documentUrl: string
  /** A first thing to try; left out: the operations have samples of their own. */
  readonly exampleUrl?: string
  /** Other pages, by their title. */
  readonly others: readonly { readonly url: string; readonly title: string }[]
}

export function sendPage(reply: FastifyReply, document: DocumentNode, options: PageOptions): FastifyReply {
  return reply
    .header('Content-Security-Policy', POLICY)
    .header('Content-Type', 'text/html; charset=utf-8')
    .send(renderPage(document, options))
}

export function renderPage(document: DocumentNode, { documentUrl, exampleUrl, others }: PageOptions): string {
  const { info } = document
  const routes = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): Route => ({ method, path, operation })),
  )
  const { tags = [] } = document
  // A contract that does not sort its operations has one section.
  const sections = (tags.length > 0 ? tags : [{ name: 'operations', description: undefined }]).map((section) => {
    const { name, description } = section
    const own = routes.filter(({ operation }) => tags.length === 0 || operation.tags?.includes(name) === true)
    const about = description === undefined ? '' : `<p class="dim">${toInlineHtml(description)}</p>`
    return `<h2>${escapeHtml(name)}</h2>${about}${own.map((route) => renderRoute(route, document)).join('')}`
  })
  const links = [{ url: documentUrl, title: 'openapi.json' }, ...others]
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escapeHtml(info.title)}</title><style>${STYLE}</style></head><body>
<nav aria-label="Operations"><input type="search" hidden placeholder="Search ( / )" aria-label="Search operations">
<p class="dim" role="status"></p><ul>${routes.map(renderEntry).join('')}</ul><p><a href="#schemas">Schemas</a></p></nav><main>
<h1>${escapeHtml(info.title)}</h1><p class="dim">Version ${escapeHtml(info.version)} ·
${links.map(({ url, title }) => `<a href="${escapeHtml(url)}">${escapeHtml(title)}</a>`).join(' · ')}</p>
<p>${toInlineHtml(info.description ?? '')}</p>
${exampleUrl === undefined ? '' : `<pre>curl ${escapeHtml(exampleUrl)}</pre>`}
${sections.join('')}<h2 id="schemas">Schemas</h2>${renderSchemas(document)}
</main><script>${SEARCH}</script></body></html>
`
}

function renderEntry({ method, path, operation }: Route): string {
  return `<li><a href="#${escapeHtml(operation.operationId)}">${method.toUpperCase()} ${escapeHtml(path)}</a></li>`
}

function renderRoute({ method, path, operation }: Route, document: DocumentNode): string {
  const about = operation.description === undefined ? '' : `<p>${toInlineHtml(operation.description)}</p>`
  return `<section id="${escapeHtml(operation.operationId)}"><h3><span class="verb ${method}">${method.toUpperCase()}</span>
<code>${escapeHtml(path)}</code></h3><p><strong>${escapeHtml(operation.summary ?? '')}</strong></p>${about}
${renderSamples(operation)}${renderParameters(operation, document)}${renderRequest(operation)}${renderResponses(operation, document)}</section>`
}

function renderSamples({ 'x-codeSamples': samples = [] }: OperationNode): string {
  return samples
    .map(({ label, source }) => `<h4>${escapeHtml(label)}</h4><pre tabindex="0">${escapeHtml(source)}</pre>`)
    .join('')
}

function renderParameters({ parameters = [] }: OperationNode, { components }: DocumentNode): string {
  if (parameters.length === 0) return ''
  const named = parameters.map((parameter): ParameterNode | undefined =>
    '$ref' in parameter ? components.parameters?.[nameOf(parameter.$ref)] : parameter,
  )
  const rows = named
    .filter((parameter) => parameter !== undefined)
    .map(
      (parameter) =>
        `<tr><td><code>${escapeHtml(parameter.name)}</code> <span class="dim">${escapeHtml(parameter.in)}${parameter.required === true ? '' : ', optional'}</span></td>` +
        `<td>${renderType(parameter.schema)}</td><td>${toInlineHtml(parameter.description ?? '')}</td></tr>`,
    )
  return `<h4>Parameters</h4><table><tbody>${rows.join('')}</tbody></table>`
}

function renderRequest({ requestBody }: OperationNode): string {
  if (requestBody === undefined) return ''
  const contents = Object.entries(requestBody.content)
  const kinds = contents.map(([mediaType, { schema }]) => `<code>${escapeHtml(mediaType)}</code> ${renderType(schema)}`)
  // What has no name among the schemas is shown here, with the objects inside it.
  const tables = contents.flatMap(([, { schema }]) => (schema?.properties === undefined ? [] : renderNested(schema)))
  return `<h4>Body</h4><p>${kinds.join(', ')}</p>${tables.join('')}`
}

function renderResponses({ responses }: OperationNode, document: DocumentNode): string {
  const rows = Object.entries(responses).map(([status, response]) => {
    const { description = '', content = {} } = resolve(response, document)
    const types = Object.entries(content).map(([mediaType, { schema }]) =>
      schema?.$ref === undefined ? escapeHtml(mediaType) : renderType(schema),
    )
    return `<tr><td><code>${escapeHtml(status)}</code></td><td>${types.join(', ')}</td><td>${toInlineHtml(description)}</td></tr>`
  })
  return `<h4>Answers</h4><table><tbody>${rows.join('')}</tbody></table>`
}

function resolve(response: ResponseNode, document: DocumentNode): ResponseNode {
  return response.$ref === undefined ? response : (document.components.responses?.[nameOf(response.$ref)] ?? {})
}

function renderSchemas({ components: { schemas } }: DocumentNode): string {
  return Object.entries(schemas)
    .filter(([name]) => !name.startsWith('Nullable'))
    .map(([name, schema]) => renderSchema(name, schemas[`Nullable${name}`] ?? schema))
    .join('')
}

/** The page's look. It stands in the page itself, so that nothing has to be fetched. */
const STYLE = `
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
.get{background:#1f6feb}.post{background:#1a7f37}.delete{background:#b3261e}.head{background:#6e7781}
table{border-collapse:collapse;width:100%;margin:.3rem 0 .8rem;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line)}
th{color:var(--dim);font-weight:500}.dim{color:var(--dim)}
`

/** Shows the operations whose texts hold every word that was typed; `/` goes to the field, Escape empties it. */
const SEARCH = `
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

// Only our own style and script, known by their digests; no image, no frame, no form.
const digest = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const POLICY = `default-src 'none'; style-src ${digest(STYLE)}; script-src ${digest(SEARCH)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/** Schemas as readable tables: one row per member, with type, limits and meaning. */
function renderSchema(name: string, schema: SchemaNode): string {
  const about = schema.description === undefined ? '' : `<p>${toInlineHtml(schema.description)}</p>`
  return `<h3 id="${anchorOf(name)}">${escapeHtml(name)}</h3>${about}${renderBody(schema)}`
}

function renderBody(schema: SchemaNode): string {
  if (schema.properties === undefined) return `<p>${renderType(schema)}${renderLimits(schema)}</p>`
  const rows = Object.entries(schema.properties).map(([name, member]) => {
    const mark = schema.required?.includes(name) === true ? '' : ' <span class="dim">optional</span>'
    const about = member.description === undefined ? '' : toInlineHtml(member.description)
    return `<tr><td><code>${escapeHtml(name)}</code>${mark}</td><td>${renderType(member)}</td><td>${about}${renderLimits(member)}</td></tr>`
  })
  return `<table><thead><tr><th>field</th><th>type</th><th></th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}

function renderNested(schema: SchemaNode): readonly string[] {
  const inner = Object.entries(schema.properties ?? {}).filter(([, { properties }]) => properties !== undefined)
  return [
    renderBody(schema),
    ...inner.map(([name, member]) => `<h4><code>${escapeHtml(name)}</code></h4>${renderBody(member)}`),
  ]
}

function renderType(schema: SchemaNode | undefined): string {
  if (schema === undefined) return ''
  if (schema.$ref !== undefined) return renderReference(schema.$ref)
  if (schema.items !== undefined) return `array of ${renderType(schema.items)}`
  if (typeof schema.additionalProperties === 'object') return `map of ${renderType(schema.additionalProperties)}`
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type ?? 'any']).join(' or ')
  return escapeHtml(schema.format === undefined ? types : `${types} (${schema.format})`)
}

// A schema that may also be null is the same thing to a reader; it says so after the name.
function renderReference(reference: string): string {
  const name = nameOf(reference)
  const shown = name.replace(/^Nullable/, '')
  return `<a href="#${anchorOf(shown)}">${escapeHtml(shown)}</a>${shown === name ? '' : ' or null'}`
}

function renderLimits(schema: SchemaNode): string {
  const limits = [
    schema.enum === undefined
      ? null
      : `one of ${schema.enum.map((value) => `<code>${escapeHtml(String(value))}</code>`).join(' ')}`,
    schema.const === undefined ? null : `always <code>${escapeHtml(String(schema.const))}</code>`,
    schema.minimum === undefined ? null : `from ${escapeHtml(String(schema.minimum))}`,
    schema.maximum === undefined ? null : `to ${escapeHtml(String(schema.maximum))}`,
    schema.maxLength === undefined ? null : `at most ${schema.maxLength} characters`,
    schema.default === undefined ? null : `default ${escapeHtml(JSON.stringify(schema.default))}`,
  ].filter((limit) => limit !== null)
  return limits.length === 0 ? '' : ` <span class="dim">${limits.join(', ')}</span>`
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}

function anchorOf(name: string): string {
  return escapeHtml(`schema-${name.toLowerCase()}`)
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character])
}

/** Escaped text in which words between backticks become code: all the markup that our descriptions use. */
export function toInlineHtml(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')
}

/** The parts of an OpenAPI document that the page shows. */
interface SchemaNode {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly items?: SchemaNode
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly additionalProperties?: SchemaNode | boolean
  readonly required?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly default?: unknown
}

interface ContentNode {
  readonly [mediaType: string]: { readonly schema?: SchemaNode }
}

interface ResponseNode {
  readonly $ref?: string
  readonly description?: string
  readonly content?: ContentNode
}

interface ParameterNode {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: SchemaNode
}

interface OperationNode {
  readonly operationId: string
  readonly tags?: readonly string[]
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly (ParameterNode | { readonly $ref: string })[]
  readonly requestBody?: { readonly content: ContentNode }
  readonly responses: Readonly<Record<string, ResponseNode>>
  readonly 'x-codeSamples'?: readonly { readonly label: string; readonly source: string }[]
}

export interface DocumentNode {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string }
  readonly tags?: readonly { readonly name: string; readonly description?: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationNode>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, SchemaNode>>
    readonly responses?: Readonly<Record<string, ResponseNode>>
    readonly parameters?: Readonly<Record<string, ParameterNode>>
  }
}
