/**
 * Which modules of the program share a file of the build. What a start loads is in few files, one for each set of threads that need
 * the same modules: left to itself, the bundler makes a file for each set of commands and surfaces, a hundred of them. Modules that
 * no start loads stay where the bundler puts them.
 */

/** What the bundler knows of a module. */
interface ModuleGraph {
  getModuleInfo(id: string): { readonly importedIds: readonly string[] } | null
}

/** By what loads them, in the order of a start. A module is named after all that load it. */
const LOADERS: readonly (readonly [string, readonly string[]])[] = [
  ['command', ['src/cli/main.ts', 'src/cli/serve/serve.ts', 'src/compose/storage/open-store.ts']],
  [
    'service',
    [
      'src/app.ts',
      'src/surfaces/legacy-v1/index.ts',
      'src/surfaces/console/index.ts',
      'src/surfaces/partner-nodes/index.ts',
      'src/surfaces/mcp/index.ts',
    ],
  ],
  [
    'store',
    ['src/adapters/store/sqlite/threads/writer-thread.ts', 'src/adapters/store/sqlite/threads/reader-thread.ts'],
  ],
  ['process', ['engine/threads/engine-process.ts']],
  ['engine', ['engine/threads/engine-thread.ts', 'engine/threads/compute-thread.ts']],
  ['bands', ['engine/bands/band-thread.ts']],
  ['custom', ['engine/custom/node-thread.ts', 'engine/custom/describe-thread.ts']],
]
const BY_A_START = ['command', 'service']

/** Everything that is loaded together with these modules. */
function loadedWith(roots: readonly string[], graph: ModuleGraph): Set<string> {
  const found = new Set<string>()
  const waiting = [...roots]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const module = found.has(id) ? null : graph.getModuleInfo(id)
    if (module === null) continue
    found.add(id)
    waiting.push(...module.importedIds)
  }
  return found
}

/** Names the file of a module; null leaves the choice to the bundler. */
export function createPartNames(toId: (file: string) => string): (id: string, graph: ModuleGraph) => string | null {
  let loaders: readonly (readonly [string, Set<string>])[] | null = null
  return (id, graph) => {
    loaders ??= LOADERS.map(([name, files]) => [name, loadedWith(files.map(toId), graph)])
    const names = loaders.filter(([, modules]) => modules.has(id)).map(([name]) => name)
    if (!names.some((name) => BY_A_START.includes(name))) return null
    // What the command has loaded is there when the service asks for it.
    return names.filter((name) => name !== 'service' || !names.includes('command')).join('+')
  }
}
