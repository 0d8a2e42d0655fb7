/**
 * A registry of npm packages that has the installed ones of this checkout and nothing else: what npm does with a package can then be tried
 * without fetching anything.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { promisify } from 'node:util'
import { project } from './packed.ts'

interface Manifest {
  readonly name: string
  readonly version: string
}

const run = promisify(execFile)
const MAX_TARBALL_BYTES = 256 * 1024 * 1024

/** Where each version of a package that is always needed lies below node_modules; two may need different ones. */
export function readInstalled(): Map<string, Map<string, string>> {
  const lock = JSON.parse(readFileSync(path.join(project, 'package-lock.json'), 'utf8')) as {
    readonly packages: Record<string, { readonly dev?: boolean; readonly optional?: boolean; readonly link?: boolean }>
  }
  const installed = new Map<string, Map<string, string>>()
  for (const [place, { dev, optional, link }] of Object.entries(lock.packages)) {
    if (!place.startsWith('node_modules/') || dev === true || optional === true || link === true) continue
    const { name, version } = readManifest(place)
    installed.set(name, (installed.get(name) ?? new Map()).set(version, place))
  }
  return installed
}

const readManifest = (place: string) =>
  JSON.parse(readFileSync(path.join(project, place, 'package.json'), 'utf8')) as Manifest

export async function openRegistry(): Promise<AsyncDisposable & { readonly url: string }> {
  const installed = readInstalled()
  const server = createServer(async ({ url = '' }, response) => {
    const [name = '', version] = decodeURIComponent(url.slice(1)).split('/-/')
    const versions = installed.get(name)
    if (versions === undefined) return response.writeHead(404).end('{}')
    const place = version === undefined ? undefined : versions.get(version)
    if (place !== undefined) return response.end(await pack(place))
    const origin = `http://${server.address() === null ? '' : hostOf(server.address() as AddressInfo)}`
    const manifests = [...versions].map(([each, at]) => [
      each,
      { ...readManifest(at), dist: { tarball: `${origin}/${name}/-/${each}` } },
    ])
    const latest = [...versions.keys()].at(-1)
    response.end(JSON.stringify({ name, 'dist-tags': { latest }, versions: Object.fromEntries(manifests) }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://${hostOf(server.address() as AddressInfo)}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const hostOf = ({ port }: AddressInfo) => `127.0.0.1:${port}`

async function pack(place: string): Promise<Buffer> {
  const args = ['-cz', '-C', path.join(project, place), '--exclude=./node_modules', '--transform=s,^\\.,package,', '.']
  return (await run('tar', args, { encoding: 'buffer', maxBuffer: MAX_TARBALL_BYTES })).stdout
}
