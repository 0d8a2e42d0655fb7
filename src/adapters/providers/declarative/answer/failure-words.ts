/**
 * What may be shown of a provider's own words: the texts where it keeps them, bounded, without control characters, without
 * the query of any address (links are signed there) and without the key, whatever it echoes.
 */
import { findLeaves, type JsonPath } from '../../../../domain/models/json-path.ts'

const MAX_LENGTH = 500
const FIRST_CONTROL_FREE = 0x20
const DELETE = 0x7f

export function readWords(document: unknown, paths: readonly JsonPath[], secret: string | null): string | null {
  const texts = typeof document === 'string' ? [document] : paths.flatMap((path) => textsAt(document, path))
  const text = texts.find((candidate) => candidate.trim() !== '')
  return text === undefined ? null : cleanWords(text, secret)
}

function textsAt(document: unknown, path: JsonPath): string[] {
  return findLeaves(document, path).flatMap(({ value }) => {
    if (typeof value === 'string') return [value]
    return typeof value === 'number' ? [String(value)] : []
  })
}

export function cleanWords(text: string, secret: string | null): string {
  const shown = secret === null || secret === '' ? text : hide(text, secret)
  const line = [...shown.slice(0, MAX_LENGTH * 4)].map((char) => (isControl(char) ? ' ' : char)).join('')
  const clean = line
    .replace(/(https?:\/\/[^\s?#"']*)[?#][^\s"']*/g, '$1')
    .replace(/\s+/g, ' ')
    .trim()
  return clean.length > MAX_LENGTH ? `${clean.slice(0, MAX_LENGTH)}…` : clean
}

/** A key of the form `id:secret` is hidden in both halves too. */
function hide(text: string, secret: string): string {
  return [secret, ...secret.split(':')]
    .filter((part) => part.length >= 6)
    .reduce((shown, part) => shown.replaceAll(part, '[key]'), text)
}

function isControl(char: string): boolean {
  const code = char.charCodeAt(0)
  return code < FIRST_CONTROL_FREE || code === DELETE
}
