/**
 * What the set-up builds from the sources, and whether it was built of exactly these: the console's page, the clients and the program in
 * few files. Plain JavaScript that Node 20 runs.
 */
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const CONSOLE_SOURCES = [
  'console/src',
  'console/styles',
  'console/icon.svg',
  'lib/json',
  'scripts/build-console.ts',
  'package-lock.json',
]
const CLIENT_SOURCES = [
  'client/generate',
  'lib/openapi',
  'client/core.ts',
  'client/events.ts',
  'client/waiting.ts',
  'client/webhooks.ts',
  'client/core.py',
  'client/tsconfig.build.json',
  'spec',
  'scripts/build-client.ts',
  'package.json',
  'package-lock.json',
]
const PROGRAM_SOURCES = [
  'src',
  'engine',
  'lib',
  'scripts/bundle-program.ts',
  'scripts/program-parts.ts',
  'package-lock.json',
]

const isTest = (name) => name === 'test' || name.endsWith('.test.ts')

function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true })
    .filter(({ name }) => !isTest(name))
    .flatMap((entry) => {
      const file = path.join(directory, entry.name)
      return entry.isDirectory() ? filesBelow(file) : [file]
    })
}

function filesOf(project, sources) {
  return sources.flatMap((source) => {
    const place = path.join(project, source)
    return path.extname(place) === '' ? filesBelow(place).sort() : [place]
  })
}

function digestOf(project, files) {
  const digest = createHash('sha256')
  for (const file of files)
    digest
      .update(`${path.relative(project, file)}\0`)
      .update(readFileSync(file))
      .update('\0')
  return digest.digest('hex').slice(0, 32)
}

// A file that was written twice at the same instant, as far as its time tells, may have changed unseen.
const SETTLED_MS = 2_000

/** What tells without reading them whether files have changed; null: one of them was written just now. */
function looksOf(project, files) {
  let looks = ''
  const settled = Date.now() - SETTLED_MS
  for (const file of files) {
    const { size, mtimeMs, ctimeMs, ino } = lstatSync(file)
    if (ctimeMs > settled) return null
    looks += `${file.slice(project.length)}\0${size}\0${mtimeMs}\0${ctimeMs}\0${ino}\0`
  }
  return createHash('sha256').update(looks).digest('hex')
}

/** The digest of files that looked like this the last time, or null. */
function recall(note, looks) {
  try {
    const known = JSON.parse(readFileSync(note, 'utf8'))
    return known.looks === looks ? known.digest : null
  } catch {
    return null
  }
}

/** A start reads names and times of the sources instead of their text. Where this cannot be written, it reads the text. */
function remember(note, known) {
  const aside = `${note}.${process.pid}`
  try {
    writeFileSync(aside, JSON.stringify(known))
    renameSync(aside, note)
  } catch {}
}

const hasAll = (project, sources) => sources.every((source) => existsSync(path.join(project, source)))

/** null: this checkout has no console. */
export function digestConsole(project) {
  return existsSync(path.join(project, 'console/src')) ? digestOf(project, filesOf(project, CONSOLE_SOURCES)) : null
}

/** Whether the page was built of exactly these sources. */
export function isConsoleBuilt(project, digest) {
  try {
    return JSON.parse(readFileSync(path.join(project, 'console/dist/manifest.json'), 'utf8')).sources === digest
  } catch {
    return false
  }
}

/** null: this checkout has no client. */
export function digestClient(project) {
  return hasAll(project, CLIENT_SOURCES) ? digestOf(project, filesOf(project, CLIENT_SOURCES)) : null
}

/** Whether the clients were made of exactly these sources. */
export function isClientBuilt(project, digest) {
  try {
    return readFileSync(path.join(project, 'client/dist/sources.txt'), 'utf8').trim() === digest
  } catch {
    return false
  }
}

/** null: this is no whole checkout. */
export function digestProgram(project) {
  if (!hasAll(project, PROGRAM_SOURCES)) return null
  const files = filesOf(project, PROGRAM_SOURCES)
  const looks = looksOf(project, files)
  const note = path.join(project, 'build', 'known.json')
  const known = looks === null ? null : recall(note, looks)
  if (known !== null) return known
  const digest = digestOf(project, files)
  if (looks !== null) remember(note, { looks, digest })
  return digest
}

/** Of the code that results of the engine depend on. */
export function digestEngine(project) {
  return digestOf(project, filesOf(project, ['engine', 'lib']))
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
