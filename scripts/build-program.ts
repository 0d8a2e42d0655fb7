/**
 * Builds the program into few files, below `build/` in a folder named after the sources: a start that reads about a hundred files
 * instead of a thousand, in every thread, is ready in half of the time. Data (contracts, models, migrations) and packages are not
 * part of it: the build finds them where the sources do.
 */
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { builtProgram, digestProgram } from './built-parts.js'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const home = path.join(project, 'build')
// Services that still run may start threads from their build; whoever builds this often is developing.
const BUILDS_KEPT = 5

// Modules that are started by their address: as a thread, as a process, or by code that is not ours.
const ADDRESSED = /new URL\('(\.{1,2}\/[^']+\.ts)', import\.meta\.url\)/g
const OWN_FILE = 'fileURLToPath(import.meta.url)'
const FOLDER = '$' + '{folder}'
const SURFACE = `new URL(\`./${FOLDER}/index.ts\`, import.meta.url)`
const ANY_ADDRESS = new RegExp(
  [ADDRESSED.source, RegExp.escape(SURFACE), RegExp.escape(OWN_FILE), 'import\\.meta\\.url'].join('|'),
  'g',
)

const entryName = (file: string) => file.replace(/\.ts$/, '').replaceAll('/', '.')
const surfaceName = (folder: string) => entryName(`src/surfaces/${folder}/index.ts`)

/** The module that an address in `file` means, as a path within the project; null for data. */
function addressed(file: string, address: string): string | null {
  const module = path.join(path.dirname(file), address)
  return existsSync(path.join(project, module)) ? module : null
}

/** The surfaces that are found by name, of those that this checkout has. */
function addSurface(entries: Map<string, string>, folder: string): void {
  const file = `src/surfaces/${folder}/index.ts`
  if (existsSync(path.join(project, file))) entries.set(surfaceName(folder), file)
}

function namedFolders(text: string): readonly string[] {
  const list = /const FOLDERS = \[([^\]]*)\]/.exec(text)?.[1]
  if (list === undefined) throw new Error('the list of optional surfaces is not where it was')
  return [...list.matchAll(/'([^']+)'/g)].map(([, name = '']) => name)
}

function findEntries(): Record<string, string> {
  const entries = new Map([['bin', 'src/bin.ts']])
  const files = ['src', 'engine', 'lib'].flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: project }))
  for (const file of files.filter((name) => !name.endsWith('.test.ts') && !name.includes('/test/'))) {
    const text = readFileSync(path.join(project, file), 'utf8')
    for (const [, address = ''] of text.matchAll(ADDRESSED)) {
      const module = addressed(file, address)
      if (module !== null) entries.set(entryName(module), module)
    }
    if (text.includes(SURFACE)) for (const folder of namedFolders(text)) addSurface(entries, folder)
  }
  return Object.fromEntries([...entries].map(([name, file]) => [name, path.join(project, file)]))
}

/** Addresses of modules lead into the build, all others to where they led from the module's own place. */
function placeAddresses(code: string, id: string): string | null {
  const file = path.relative(project, id)
  if (file.startsWith('..') || file.startsWith('node_modules') || !code.includes('import.meta.url')) return null
  return code.replaceAll(ANY_ADDRESS, (whole, address: string | undefined) => {
    if (whole === SURFACE) return `new URL(\`./${surfaceName(FOLDER)}.js\`, import.meta.url)`
    const module = address === undefined ? null : addressed(file, address)
    if (module !== null) return `new URL('./${entryName(module)}.js', import.meta.url)`
    // The program's own file is what starts it again.
    if (whole === OWN_FILE) return whole
    return whole.replace('import.meta.url', `new URL('../../${file}', import.meta.url).href`)
  })
}

async function bundle(folder: string): Promise<void> {
  const bundled = await rolldown({
    input: findEntries(),
    cwd: project,
    platform: 'node',
    // A module lies where its address says, also in a checkout whose folders are links.
    resolve: { symlinks: false },
    external: /^[^./]/,
    plugins: [{ name: 'place addresses', transform: placeAddresses }],
  })
  await bundled.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'part.[name]-[hash].js',
  })
  await bundled.close()
}

function removeOldBuilds(current: string): void {
  const builds = readdirSync(home)
    .map((name) => path.join(home, name))
    .filter((folder) => folder !== current)
    .map((folder) => ({ folder, at: statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
  for (const { folder } of builds.toSorted((a, b) => b.at - a.at).slice(BUILDS_KEPT - 1))
    rmSync(folder, { recursive: true, force: true })
}

async function build(): Promise<void> {
  // Before the sources are read: whatever changes meanwhile makes the next start build again.
  const digest = digestProgram(project)
  if (digest === null) throw new Error('this is no whole checkout')
  const folder = path.dirname(builtProgram(project, digest))
  mkdirSync(home, { recursive: true })
  const aside = mkdtempSync(path.join(home, 'under-way-'))
  try {
    await bundle(aside)
    // Of two builds at once the first one stays: they are the same.
    if (!existsSync(folder)) renameSync(aside, folder)
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
  removeOldBuilds(folder)
}

await build()
