/**
 * Builds the program into few files: a start that reads about a hundred files instead of a thousand, in every thread, is ready in
 * half of the time. Data (contracts, models, migrations) is not part of it: the build finds it where the sources do, so it must lie
 * two folders below the folder that has them.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import http from 'node:http'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, rolldown } from 'rolldown'
import { digestEngine } from './built-parts.js'
import { createPartNames } from './program-parts.ts'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

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

// Packages in plain JavaScript that every start needs: as part of the build they cost a start a third of what they cost as files.
// Others stay where they are: they bring binaries along, start files of their own, or are loaded only when they are needed.
const BUNDLED = ['ajv', 'commander', 'fastify', 'pino', 'prom-client', 'ws']

function isOutside(id: string, importer: string | undefined): boolean {
  if (/^[./\0]/.test(id) || id === HTTP) return false
  if (isBuiltin(id)) return true
  const isOfPackage = importer?.includes('/node_modules/') === true
  return !isOfPackage && !BUNDLED.some((name) => id === name || id.startsWith(`${name}/`))
}

const isPackageOutside = (id: string) => !/^[./\0]/.test(id) && id !== HTTP

const HTTP = 'node:http'
const HTTP_AS_IT_IS = `\0${HTTP}`

/**
 * An import of node:http asks for all that it exports, also for what Node makes only when it is asked for: a WebSocket, and with
 * it a whole HTTP client, which takes a start some 60 ms. In the build, the names come without being looked at.
 */
const httpAsItIs: Plugin = {
  name: 'node:http as it is',
  resolveId: (id, importer) => (id === HTTP && importer !== HTTP_AS_IT_IS ? HTTP_AS_IT_IS : null),
  load(id) {
    if (id !== HTTP_AS_IT_IS) return null
    const names = Object.keys(http).filter((name) => Object.getOwnPropertyDescriptor(http, name)?.get === undefined)
    return `const http = process.getBuiltinModule('${HTTP}')
export default http
export const { ${names.join(', ')} } = http`
  },
}

interface BundleOptions {
  /** False for what is given on: the packages then come from where their authors publish them. */
  readonly hasPackages: boolean
  /** Further programs over the same parts, by name: those of tests. */
  readonly entries?: Readonly<Record<string, string>>
}

export async function bundleProgram(folder: string, { hasPackages, entries = {} }: BundleOptions): Promise<void> {
  const bundled = await rolldown({
    input: { ...findEntries(), ...entries },
    cwd: project,
    platform: 'node',
    // A module lies where its address says, also in a checkout whose folders are links.
    resolve: { symlinks: false },
    external: hasPackages ? isOutside : isPackageOutside,
    preserveEntrySignatures: 'allow-extension',
    checks: { ineffectiveDynamicImport: false },
    transform: { define: { ENGINE_CODE: JSON.stringify(digestEngine(project)) } },
    plugins: [httpAsItIs, { name: 'place addresses', transform: placeAddresses }],
  })
  await bundled.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'part.[name]-[hash].js',
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ debugName: 'parts of a start', name: createPartNames((file) => path.join(project, file)) }],
    },
    // Every thread holds the text of what it runs, and in two bytes for each character where a single one needs them. Lines and
    // names stay, for the sake of stack traces.
    comments: false,
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
  })
  await bundled.close()
}
