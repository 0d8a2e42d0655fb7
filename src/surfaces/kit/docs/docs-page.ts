/**
 * An API reference as one page, made from its OpenAPI document on the server: nothing to fetch, and one short script of our own, for the
 * search and, where it is allowed, for trying requests; everything else works without it. What the document says is shown as text, never
 * as markup.
 */
import type { FastifyReply } from 'fastify'
import { POLICY, SEARCH, STYLE, TRY, TRY_POLICY } from './page-parts.ts'

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
  /** What is shown of an operation beside its document, by its id. */
  readonly more?: ReadonlyMap<string, ShownOperation>
  /** Requests can be sent from the page. */
  readonly isTryable?: boolean
}

export interface ShownOperation {
  readonly samples: readonly { readonly label: string; readonly source: string }[]
  /** An answer to the samples, as text. */
  readonly answer: string | null
  /** For the form, as JSON. */
  readonly request: string
}

export function sendPage(reply: FastifyReply, document: DocumentNode, options: PageOptions): FastifyReply {
  return reply
    .header('Content-Security-Policy', options.isTryable === true ? TRY_POLICY : POLICY)
    .header('Content-Type', 'text/html; charset=utf-8')
    .send(renderPage(document, options))
}

export function renderPage(document: DocumentNode, options: PageOptions): string {
  const { documentUrl, exampleUrl, others, isTryable = false } = options
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
    return `<h2>${escapeHtml(name)}</h2>${about}${own.map((route) => renderRoute(route, document, options)).join('')}`
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
${exampleUrl === undefined ? '' : `<pre tabindex="0">curl ${escapeHtml(exampleUrl)}</pre>`}
${sections.join('')}<h2 id="schemas">Schemas</h2>${renderSchemas(document)}
</main><script>${isTryable ? TRY : SEARCH}</script></body></html>
`
}

function renderEntry({ method, path, operation }: Route): string {
  return `<li><a href="#${escapeHtml(operation.operationId)}">${method.toUpperCase()} ${escapeHtml(path)}</a></li>`
}

function renderRoute({ method, path, operation }: Route, document: DocumentNode, options: PageOptions): string {
  const more = options.more?.get(operation.operationId)
  const form = options.isTryable === true && more !== undefined ? ` data-request="${escapeHtml(more.request)}"` : ''
  const about = operation.description === undefined ? '' : `<p>${toInlineHtml(operation.description)}</p>`
  return `<section id="${escapeHtml(operation.operationId)}"${form}><h3><span class="verb ${method}">${method.toUpperCase()}</span>
<code>${escapeHtml(path)}</code></h3><p><strong>${escapeHtml(operation.summary ?? '')}</strong></p>${about}
${renderSamples(operation, more)}${renderParameters(operation, document)}${renderRequest(operation)}${renderResponses(operation, document)}</section>`
}

/** Those of the document are open; of others the first, and pressing another one closes it. */
function renderSamples({ operationId, 'x-codeSamples': own = [] }: OperationNode, more?: ShownOperation): string {
  const told = own.map(
    ({ label, source }) => `<h4>${escapeHtml(label)}</h4><pre tabindex="0">${escapeHtml(source)}</pre>`,
  )
  const folded = (more?.samples ?? []).map(
    ({ label, source }, at) =>
      `<details name="${escapeHtml(operationId)}"${at === 0 ? ' open' : ''}><summary>${escapeHtml(label)}</summary><pre tabindex="0">${escapeHtml(source)}</pre></details>`,
  )
  const answer = more?.answer ?? null
  const shown =
    answer === null ? '' : `<details><summary>Answer</summary><pre tabindex="0">${escapeHtml(answer)}</pre></details>`
  return told.join('') + folded.join('') + shown
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
  return `<table><thead><tr><th>field</th><th>type</th><th>meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
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
