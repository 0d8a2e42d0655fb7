/** Checks of what the service runs on: the runtime, its packages (native ones included) and optional programs. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { type Finding, fail, ok, toReason, warn } from './check.ts'

export function checkRuntime(): Finding {
  // bin.ts refuses anything older before this can run.
  return ok('runtime', `Node ${process.version} on ${process.platform}-${process.arch}`)
}

/** Whether the installed packages are those that package.json asks for. */
export function checkPackages(): Finding {
  const { dependencies } = readJson(new URL('../../../package.json', import.meta.url)) as {
    dependencies: Record<string, string>
  }
  const wrong = Object.entries(dependencies).filter(([name, version]) => installedVersion(name) !== version)
  if (wrong.length === 0) return ok('packages', `${Object.keys(dependencies).length} dependencies in place`)
  const names = wrong.map(([name, version]) => `${name}@${version}`).join(', ')
  return fail('packages', `missing or of another version: ${names}`, 'run `npm ci` in the project folder')
}

function readJson(file: string | URL): unknown {
  return JSON.parse(readFileSync(file, 'utf8'))
}

/** Finds a package where the package manager put it: beside Atelier when that is installed as a package, below it in a checkout. */
function installedVersion(name: string): string | null {
  try {
    const manifest = findPackageJSON(name, import.meta.url)
    return manifest === undefined ? null : (readJson(manifest) as { version: string }).version
  } catch {
    return null
  }
}

export async function checkPictures(): Promise<Finding> {
  try {
    const { default: sharp } = await import('sharp')
    return ok('pictures', `sharp ${sharp.versions.sharp} with libvips ${sharp.versions.vips}`)
  } catch (error) {
    return fail(
      'pictures',
      `sharp does not load: ${toReason(error)}`,
      'run `npm ci` on this machine; node_modules may come from another',
    )
  }
}

export async function checkHashing(): Promise<Finding> {
  try {
    const { Blake3Hasher } = await import('@napi-rs/blake-hash')
    return ok('hashing', `native blake3 (${new Blake3Hasher().update('').digest('hex').slice(0, 8)}…)`)
  } catch (error) {
    return warn(
      'hashing',
      `native blake3 does not load, the slower fallback is used: ${toReason(error)}`,
      'run `npm ci` on this machine',
    )
  }
}

const PROGRAM_WITHIN_MS = 10_000

export function checkFfmpeg(): Finding {
  const { stdout, status } = spawnSync('ffmpeg', ['-version'], { encoding: 'utf8', timeout: PROGRAM_WITHIN_MS })
  const version = status === 0 ? /^ffmpeg version (\S+)/.exec(stdout)?.[1] : undefined
  if (version !== undefined) return ok('ffmpeg', version)
  return ok('ffmpeg', 'not found; it is optional and only needed for video and audio')
}
