/**
 * The papers that travel with the program: `sbom.cdx.json`, a CycloneDX list of every package that it is made of or needs, and `NOTICE`,
 * their licences, with the texts of those whose code is part of the console's scripts. Both say the same for the same lockfile.
 */
import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

interface Locked {
  readonly version: string
  readonly license?: string
  readonly integrity?: string
  readonly optional?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

interface Part extends Locked {
  readonly name: string
  /** Where it lies below the project. */
  readonly place: string
  readonly needs: readonly string[]
  readonly isBundled: boolean
}

const MODULES = 'node_modules/'

/** As Node looks a package up: beside its user, then one folder up, and so on. */
function findPlace(locked: ReadonlyMap<string, Locked>, user: string, name: string): string | null {
  for (let folder = user; ; ) {
    const place = path.posix.join(folder, MODULES, name)
    if (locked.has(place)) return place
    if (folder === '') return null
    const end = folder.lastIndexOf(`/${MODULES}`)
    folder = end === -1 ? '' : folder.slice(0, end)
  }
}

interface Parts {
  readonly own: Locked & { readonly name: string }
  readonly ownNeeds: readonly string[]
  readonly all: readonly Part[]
}

/** What a program that was installed needs, and what the console's scripts contain. */
function findParts(locked: ReadonlyMap<string, Locked>, own: Parts['own'], bundled: readonly string[]): Parts {
  const found = new Map<string, Part>()
  const needsOf = (place: string, { dependencies, optionalDependencies }: Locked) =>
    Object.keys({ ...dependencies, ...optionalDependencies }).flatMap((name) => findPlace(locked, place, name) ?? [])
  const inConsole = bundled.flatMap((name) => findPlace(locked, '', name) ?? [])
  const ownNeeds = [...new Set([...needsOf('', own), ...inConsole])].sort()
  const waiting = [...ownNeeds]
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    const entry = locked.get(place)
    if (entry === undefined || found.has(place)) continue
    const name = place.slice(place.lastIndexOf(MODULES) + MODULES.length)
    const isBundled = inConsole.includes(place)
    // What the scripts use of a package's own needs is bundled itself.
    const needs = isBundled ? [] : [...new Set(needsOf(place, entry))].sort()
    found.set(place, { ...entry, name, place, needs, isBundled })
    waiting.push(...needs)
  }
  return { own, ownNeeds, all: [...found.values()].sort((one, other) => (one.place < other.place ? -1 : 1)) }
}

const addressOf = ({ name, version }: { readonly name: string; readonly version: string }) =>
  `pkg:npm/${name.replace('@', '%40')}@${version}`

function licenceOf({ license }: Locked): object[] {
  if (license === undefined) return []
  return [/ (AND|OR|WITH) /.test(license) ? { expression: license } : { license: { id: license } }]
}

function describe(part: Part): object {
  const hash = part.integrity?.startsWith('sha512-') ? Buffer.from(part.integrity.slice(7), 'base64') : null
  return {
    type: 'library',
    'bom-ref': part.place,
    name: part.name,
    version: part.version,
    scope: part.optional === true ? 'optional' : 'required',
    ...(hash === null ? {} : { hashes: [{ alg: 'SHA-512', content: hash.toString('hex') }] }),
    licenses: licenceOf(part),
    purl: addressOf(part),
  }
}

function listParts({ own, ownNeeds, all }: Parts): string {
  const list = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': own.name,
        name: own.name,
        version: own.version,
        licenses: licenceOf(own),
        purl: addressOf(own),
      },
    },
    components: all.map(describe),
    dependencies: [
      { ref: own.name, dependsOn: ownNeeds },
      ...all.map(({ place, needs }) => ({ ref: place, dependsOn: needs })),
    ],
  }
  const digest = createHash('sha256').update(JSON.stringify(list)).digest('hex')
  // A name-based UUID: the list of the same parts has the same one.
  const serial = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`
  return `${JSON.stringify({ ...list, serialNumber: `urn:uuid:${serial}` }, null, 1)}\n`
}

function writeNotice(project: string, { own, all }: Parts): string {
  const texts = all
    .filter(({ isBundled }) => isBundled)
    .map(({ name, version, place }) => {
      const [file] = globSync('{LICENSE,LICENCE,license,licence}*', { cwd: path.join(project, place) }).sort()
      if (file === undefined) throw new Error(`${name} is part of the console and has no licence text`)
      return `\n---- ${name} ${version}\n\n${readFileSync(path.join(project, place, file), 'utf8').trim()}\n`
    })
  const rows = all.map(
    ({ name, version, license = 'see its package', isBundled }) =>
      `${name} ${version} (${license})${isBundled ? ', part of the console' : ''}`,
  )
  return [
    `Atelier ${own.version}, under the Apache License 2.0 (see LICENSE).`,
    '\nIt needs or contains these packages, each under its own licence:\n',
    ...new Set(rows),
    '\nThe licences of those whose code is part of the console:',
    ...texts,
  ].join('\n')
}

/** `bundled`: the names of the packages whose code the console's scripts contain. */
export function writePapers(project: string, folder: string, bundled: readonly string[]): void {
  const lock = JSON.parse(readFileSync(path.join(project, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, Parts['own']>>
  }
  const parts = findParts(new Map(Object.entries(lock.packages)), lock.packages[''], bundled)
  writeFileSync(path.join(folder, 'sbom.cdx.json'), listParts(parts))
  writeFileSync(path.join(folder, 'NOTICE'), writeNotice(project, parts))
}
