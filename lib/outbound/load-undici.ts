/**
 * The HTTP client, loaded with the first request that leaves: it takes a good part of a tenth of a second, which a start and a
 * service that calls nobody can do without.
 */
import { createRequire } from 'node:module'
import type * as undici from 'undici'

const require = createRequire(import.meta.url)
let loaded: typeof undici | null = null

export function loadUndici(): typeof undici {
  loaded ??= require('undici') as typeof undici
  return loaded
}
