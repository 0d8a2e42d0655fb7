/**
 * How a thread loads custom nodes. `atelier/nodes` leads to our file from any folder, without an installation. The sources
 * that the first thread read are what every later one gets: a file that changes while the engine is open changes nothing.
 */
import { type LoadHookSync, type ResolveHookSync, registerHooks } from 'node:module'

// By the service's package, and by the engine's own.
const API_SPECIFIERS = ['atelier/nodes', '@atelier/engine/nodes']
const API_URL = new URL('./nodes-api.ts', import.meta.url).href

/** Text by URL. */
export type SourceTexts = ReadonlyMap<string, string>

/** Node modules are ES modules whatever package.json lies near them. */
const FORMATS: Readonly<Record<string, string>> = { ts: 'module-typescript', js: 'module', mjs: 'module' }

const endingOf = (url: string) => url.slice(url.lastIndexOf('.') + 1)

const resolve: ResolveHookSync = (specifier, context, next) =>
  API_SPECIFIERS.includes(specifier)
    ? { url: API_URL, format: FORMATS[endingOf(API_URL)], shortCircuit: true }
    : next(specifier, context)

function isOwnCode(url: string, folders: readonly string[]): boolean {
  return folders.some((folder) => url.startsWith(folder)) && !url.includes('/node_modules/')
}

/** Folders are URLs with a slash at the end. Returns the texts that have been loaded so far. */
export function installModuleHooks(folders: readonly string[], known: SourceTexts | null): SourceTexts {
  const loaded = new Map<string, string>()
  const load: LoadHookSync = (url, context, next) => {
    if (!isOwnCode(url, folders)) return next(url, context)
    const format = FORMATS[endingOf(url)] ?? context.format
    const text = known?.get(url)
    if (text !== undefined && format) return { format, source: text, shortCircuit: true }
    const result = next(url, { ...context, format })
    if (result.source !== undefined && result.source !== null) loaded.set(url, toText(result.source))
    return result
  }
  registerHooks({ resolve, load })
  return loaded
}

function toText(source: string | ArrayBuffer | NodeJS.TypedArray): string {
  if (typeof source === 'string') return source
  return ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength).toString()
    : Buffer.from(source).toString()
}
