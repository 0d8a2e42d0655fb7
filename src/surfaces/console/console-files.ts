/**
 * The files of the page as they were built: names with a digest in them, so that a browser may keep them for ever, each also
 * compressed. They lie in memory, a few hundred kilobytes. A build that replaces them while the service runs is seen at the next page.
 */
import { readFileSync, statSync } from 'node:fs'
import { uptimeMs } from '../../../lib/waiting/uptime.ts'

export interface PageBuild {
  /** Names the build; another one means that the page should be loaded again. */
  readonly id: string
  readonly script: string
  /** Scripts that the first one needs before it can begin. */
  readonly needed: readonly string[]
  readonly style: string
  readonly icon: string
  /** By name. */
  readonly files: ReadonlyMap<string, PageFile>
}

export interface PageFile {
  readonly contentType: string
  readonly plain: Buffer
  readonly gzip: Buffer | null
  readonly brotli: Buffer | null
}

interface Manifest {
  readonly build: string
  readonly script: string
  readonly needed: readonly string[]
  readonly style: string
  readonly icon: string
  readonly files: Readonly<Record<string, { readonly type: string; readonly compressed: boolean }>>
}

// Pages and streams ask all the time; a new build may be seen a moment later.
const LOOK_MS = 1000
const DIRECTORY = new URL('../../../console/dist/', import.meta.url)

export interface PageFiles {
  /** null: the page was never built. */
  current(): PageBuild | null
}

export function openPageFiles(directory: URL = DIRECTORY): PageFiles {
  const manifestUrl = new URL('manifest.json', directory)
  let seen = ''
  let build: PageBuild | null = null
  let nextLookAt = Number.NEGATIVE_INFINITY

  function look(): void {
    const stat = statSync(manifestUrl, { throwIfNoEntry: false })
    const mark = stat === undefined ? '' : `${stat.mtimeMs} ${stat.size}`
    if (mark === seen) return
    build = stat === undefined ? null : readBuild(directory, manifestUrl)
    seen = mark
  }

  return {
    current() {
      const now = uptimeMs()
      if (now < nextLookAt) return build
      nextLookAt = now + LOOK_MS
      try {
        look()
      } catch {
        // In the middle of another build: the one that is known stays until the next look.
      }
      return build
    },
  }
}

function readBuild(directory: URL, manifestUrl: URL): PageBuild {
  const manifest = JSON.parse(readFileSync(manifestUrl, 'utf8')) as Manifest
  const files = Object.entries(manifest.files).map(([name, { type, compressed }]) => {
    const read = (ending: string) => readFileSync(new URL(name + ending, directory))
    const file: PageFile = {
      contentType: type,
      plain: read(''),
      gzip: compressed ? read('.gz') : null,
      brotli: compressed ? read('.br') : null,
    }
    return [name, file] as const
  })
  const { script, needed, style, icon } = manifest
  return { id: manifest.build, script, needed, style, icon, files: new Map(files) }
}
