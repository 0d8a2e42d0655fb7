/**
 * The API reference as one page, made from the contract on the server: no script, no request to anywhere. What the document
 * says is shown as text, never as markup.
 */
import { escapeHtml, toInlineHtml } from './escape-html.ts'
import type { DocumentNode, OperationNode, ParameterNode, ResponseNode } from './openapi-types.ts'
import { nameOf, renderSchema, renderType } from './render-schema.ts'

/** Behind the path of a page: its document for machines. */
export const DOCUMENT = '/openapi.json'

interface Route {
  readonly method: string
  readonly path: string
  readonly operation: OperationNode
}

interface PageOptions {
  /** Scheme, authority and mount prefix: what stands before the pages. */
  readonly docsUrl: string
  /** The same for the paths of this contract. */
  readonly apiUrl: string
  /** Of this page. */
  readonly path: string
  /** A first thing to try, below `apiUrl`. */
  readonly examplePath: string
  /** The other pages, by their title. */
  readonly others: readonly { readonly path: string; readonly title: string }[]
}

export function renderPage(document: DocumentNode, options: PageOptions): string {
  const { docsUrl, apiUrl, path: ownPath, examplePath } = options
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
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escapeHtml(info.title)}</title><style>${STYLE}</style></head><body><main>
<h1>${escapeHtml(info.title)}</h1><p class="dim">Version ${escapeHtml(info.version)} ·
<a href="${escapeHtml(docsUrl + ownPath + DOCUMENT)}">openapi.json</a>${renderOthers(options)}</p>
<p>${toInlineHtml(info.description ?? '')}</p>
<pre>curl ${escapeHtml(apiUrl + examplePath)}</pre>
<nav><ul>${routes.map(renderEntry).join('')}</ul></nav>
${sections.join('')}<h2>Schemas</h2>${renderSchemas(document)}
</main></body></html>
`
}

function renderOthers({ docsUrl, others }: PageOptions): string {
  return others.map(({ path, title }) => ` · <a href="${escapeHtml(docsUrl + path)}">${escapeHtml(title)}</a>`).join('')
}

function renderEntry({ method, path, operation }: Route): string {
  return `<li><a href="#${escapeHtml(operation.operationId)}">${method.toUpperCase()} ${escapeHtml(path)}</a></li>`
}

function renderRoute({ method, path, operation }: Route, document: DocumentNode): string {
  const about = operation.description === undefined ? '' : `<p>${toInlineHtml(operation.description)}</p>`
  return `<section id="${escapeHtml(operation.operationId)}"><h3><span class="verb ${method}">${method.toUpperCase()}</span>
<code>${escapeHtml(path)}</code></h3><p><strong>${escapeHtml(operation.summary ?? '')}</strong></p>${about}
${renderParameters(operation, document)}${renderRequest(operation)}${renderResponses(operation, document)}</section>`
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
  const kinds = Object.entries(requestBody.content).map(
    ([mediaType, { schema }]) => `<code>${escapeHtml(mediaType)}</code> ${renderType(schema)}`,
  )
  return `<h4>Body</h4><p>${kinds.join(', ')}</p>`
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
export const STYLE = `
:root{color-scheme:light dark;--line:light-dark(#d8dce2,#343a44);--soft:light-dark(#f4f6f8,#1c2027);--dim:light-dark(#5b6470,#9aa4b2)}
*{box-sizing:border-box}
body{margin:0;font:16px/1.55 system-ui,sans-serif;background:light-dark(#fff,#14171c);color:light-dark(#1b1f24,#e6e9ee)}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem 5rem}
h1{font-size:1.9rem;margin:0 0 .25rem}h2{margin:3rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}
h3{margin:2.2rem 0 .3rem;font-size:1.05rem}h4{margin:1rem 0 .2rem;font-size:.85rem;color:var(--dim)}
p{margin:.4rem 0}a{color:light-dark(#0b5cad,#7db8ff)}
code,pre{font:.87em/1.5 ui-monospace,monospace;background:var(--soft);border-radius:4px}
code{padding:.1em .3em}pre{padding:.8rem 1rem;overflow-x:auto}
.verb{display:inline-block;min-width:4.2rem;font:600 .8rem ui-monospace,monospace;padding:.2rem .4rem;border-radius:4px;color:#fff;text-align:center}
.get{background:#1f6feb}.post{background:#1a7f37}.delete{background:#b3261e}.head{background:#6e7781}
table{border-collapse:collapse;width:100%;margin:.3rem 0 .8rem;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line)}
th{color:var(--dim);font-weight:500}.dim{color:var(--dim)}nav ul{columns:2;padding-left:1.1rem}nav li{break-inside:avoid}
@media (max-width:40rem){nav ul{columns:1}}
`
