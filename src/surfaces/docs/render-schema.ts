/** Schemas as readable tables: one row per member, with type, limits and meaning. */
import { escapeHtml, toInlineHtml } from './escape-html.ts'
import type { SchemaNode } from './openapi-types.ts'

export function renderSchema(name: string, schema: SchemaNode): string {
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

export function renderType(schema: SchemaNode | undefined): string {
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
    schema.minimum === undefined ? null : `from ${schema.minimum}`,
    schema.maximum === undefined ? null : `to ${schema.maximum}`,
    schema.maxLength === undefined ? null : `at most ${schema.maxLength} characters`,
    schema.default === undefined ? null : `default ${escapeHtml(JSON.stringify(schema.default))}`,
  ].filter((limit) => limit !== null)
  return limits.length === 0 ? '' : ` <span class="dim">${limits.join(', ')}</span>`
}

export function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}

function anchorOf(name: string): string {
  return escapeHtml(`schema-${name.toLowerCase()}`)
}
