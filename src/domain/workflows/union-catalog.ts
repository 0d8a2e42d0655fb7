/**
 * What several engines can run together. A class is described as the first engine that has it describes it, with the choices
 * of all the others added to its lists: a value is valid when some engine offers it. United class by class, when first asked
 * for; whether one engine has everything that a graph needs is a question for needs.ts.
 *
 * Guests are engines of machines that the service does not trust. They add classes that no other engine has, and choices; what a
 * class of the service's own engines is they cannot change.
 */
import type { InputSpec, NodeCatalog, NodeDefinition, Repeatability } from '../../../engine/graph/node-catalog.ts'

const CATEGORIES = ['required', 'optional'] as const

export function uniteCatalogs(own: readonly NodeCatalog[], guests: readonly NodeCatalog[] = []): NodeCatalog {
  const catalogs = [...own, ...guests]
  if (catalogs.length === 1 && guests.length === 0) return catalogs[0]
  const united = new Map<string, NodeDefinition | null>()
  const isOwn = (classType: string) => own.some((catalog) => catalog.find(classType) !== null)
  const owner = (classType: string) => catalogs.find((catalog) => catalog.find(classType) !== null)

  function find(classType: string): NodeDefinition | null {
    let definition = united.get(classType)
    if (definition === undefined) {
      definition = unite(catalogs.map((catalog) => catalog.find(classType)).filter((each) => each !== null))
      // Unknown names come from callers and are without number: they are not remembered.
      if (definition !== null) united.set(classType, definition)
    }
    return definition
  }

  return {
    find,
    classTypes: () => [...new Set(catalogs.flatMap((catalog) => catalog.classTypes()))],
    selfCheckedInputs: (classType) => owner(classType)?.selfCheckedInputs(classType) ?? [],
    judgesItself: (classType) =>
      (isOwn(classType) ? own : guests).some((catalog) => catalog.judgesItself?.(classType) === true),
    fileInputs(classType) {
      const catalog = owner(classType)
      return catalog?.fileInputs?.(classType) ?? catalog?.selfCheckedInputs(classType) ?? []
    },
    folderInputs: (classType) => owner(classType)?.folderInputs?.(classType) ?? [],
    // A guest cannot promise for its machine, and it may be the one that runs the graph.
    repeatability: (classType) =>
      guests.some((catalog) => catalog.find(classType) !== null) ? null : findPromise(own, classType),
  }
}

/** Whichever engine runs the graph, the bytes must be the same: all that have the class promise it for one build. */
function findPromise(catalogs: readonly NodeCatalog[], classType: string): Repeatability | null {
  const able = catalogs.filter((catalog) => catalog.find(classType) !== null)
  const promises = able.map((catalog) => catalog.repeatability?.(classType) ?? null)
  const [first = null] = promises
  return promises.every((promise) => promise?.build === first?.build) ? first : null
}

function unite(definitions: readonly NodeDefinition[]): NodeDefinition | null {
  const [first, ...others] = definitions
  if (first === undefined || others.length === 0) return first ?? null
  const input: Record<string, unknown> = { ...first.input }
  for (const category of CATEGORIES) {
    const group = first.input[category]
    if (group === undefined) continue
    input[category] = Object.fromEntries(
      Object.entries(group).map(([name, spec]) => [
        name,
        uniteSpec(
          spec,
          others.map((other) => findSpec(other, name)),
        ),
      ]),
    )
  }
  return { ...first, input }
}

function findSpec(definition: NodeDefinition, name: string): InputSpec | undefined {
  for (const category of CATEGORIES) {
    const group = definition.input[category]
    if (group !== undefined && Object.hasOwn(group, name)) return group[name]
  }
  return undefined
}

function uniteSpec(spec: InputSpec, others: readonly (InputSpec | undefined)[]): InputSpec {
  const choices = listOf(spec)
  if (choices === null) return spec
  const more = others.flatMap((other) => (other === undefined ? [] : (listOf(other) ?? [])))
  const all = [...new Set([...choices, ...more])]
  if (all.length === choices.length) return spec
  const [type, options] = spec
  if (typeof type === 'string') return [type, { ...options, options: all }]
  return options === undefined ? [all] : [all, options]
}

function listOf([type, options]: InputSpec): readonly unknown[] | null {
  if (typeof type !== 'string') return type
  return type === 'COMBO' && Array.isArray(options?.options) ? options.options : null
}
