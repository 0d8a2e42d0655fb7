/**
 * What the set-up builds from the sources, and whether it was built of exactly these: the console's page and the program in few files.
 * Plain JavaScript that Node 20 runs.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

const CONSOLE_SOURCES = [
  'console/src',
  'console/styles',
  'console/icon.svg',
  'lib/json',
  'scripts/build-console.ts',
  'package-lock.json',
]
const PROGRAM_SOURCES = ['src', 'engine', 'lib', 'scripts/bundle-program.ts', 'package-lock.json']

const isTest = (name) => name === 'test' || name.endsWith('.test.ts')

function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true })
    .filter(({ name }) => !isTest(name))
    .flatMap((entry) => {
      const file = path.join(directory, entry.name)
      return entry.isDirectory() ? filesBelow(file) : [file]
    })
}

function digestOf(project, sources) {
  const digest = createHash('sha256')
  for (const source of sources) {
    const place = path.join(project, source)
    const files = path.extname(place) === '' ? filesBelow(place).sort() : [place]
    for (const file of files)
      digest
        .update(`${path.relative(project, file)}\0`)
        .update(readFileSync(file))
        .update('\0')
  }
  return digest.digest('hex').slice(0, 32)
}

const hasAll = (project, sources) => sources.every((source) => existsSync(path.join(project, source)))

/** null: this checkout has no console. */
export function digestConsole(project) {
  return existsSync(path.join(project, 'console/src')) ? digestOf(project, CONSOLE_SOURCES) : null
}

/** Whether the page was built of exactly these sources. */
export function isConsoleBuilt(project, digest) {
  try {
    return JSON.parse(readFileSync(path.join(project, 'console/dist/manifest.json'), 'utf8')).sources === digest
  } catch {
    return false
  }
}

/** null: this is no whole checkout. */
export function digestProgram(project) {
  return hasAll(project, PROGRAM_SOURCES) ? digestOf(project, PROGRAM_SOURCES) : null
}

/**
 * Each build has a folder of its own, so that a service which runs goes on with its own files whatever is built meanwhile. The entry
 * is written last.
 */
export function builtProgram(project, digest) {
  return path.join(project, 'build', digest, 'bin.js')
}

/** The program in a package that was installed. */
export function packedProgram(project) {
  return path.join(project, 'dist', 'build', 'program', 'bin.js')
}

/** What `node` is to run: the build of exactly these sources, or the sources themselves where there is none. */
export function findProgram(project) {
  const digest = digestProgram(project)
  const built = digest === null ? null : builtProgram(project, digest)
  return built !== null && existsSync(built) ? built : path.join(project, 'src', 'bin.ts')
}
