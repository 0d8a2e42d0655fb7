/** The versions of an endpoint: which one calls get, what others are called, and what differs. */
import { useSignal } from '@preact/signals'
import {
  changeEndpoint,
  compareVersions,
  listVersions,
  moveAlias,
  removeAlias,
  type VersionSummary,
} from '../../api/endpoints.ts'
import { Icon } from '../../components/icon.tsx'
import { confirm } from '../../components/overlay/dialog.tsx'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { Ago, showToast, Words } from '../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { useResource } from '../../state/resource.ts'
import { plural } from '../../text/format.ts'
import { may, type TabProps } from './endpoints-page.tsx'

export function VersionsTab({ endpoint, onChanged }: TabProps) {
  const { name, current_version: current } = endpoint
  const before = query.value.get('before')
  const resource = useResource(`versions ${name} ${before}`, (signal) => listVersions(name, before, signal))
  const mayWrite = may('endpoints:write') && endpoint.owner === 'account'
  const address = `/endpoints/${encodeURIComponent(name)}`
  async function makeCurrent(version: number): Promise<void> {
    const isMeant = await confirm({
      title: `Make version ${version} the current one?`,
      text: `Calls that name no version get it from now on, instead of version ${current}.`,
      deed: `Make version ${version} current`,
      isDangerous: false,
    })
    if (!isMeant) return
    await tell(async () => {
      await changeEndpoint(endpoint, { current_version: version })
      showToast(`Version ${version} is the current one.`)
    })
    onChanged()
  }
  const columns: readonly PlainColumn<VersionSummary>[] = [
    {
      label: 'Version',
      cell: ({ version }) => <Named version={version} current={current} aliases={endpoint.aliases} />,
    },
    { label: 'Release', cell: ({ release }) => (release === undefined ? '' : <Release {...release} />) },
    { label: 'Note', cell: ({ note }) => <Words text={note} /> },
    { label: 'Published', cell: ({ created_at: at }) => <Ago at={at} /> },
    {
      label: 'Deeds',
      cell: ({ version }) => (
        <span class="row">
          <a href={hrefOf(`${address}?version=${version}#try`)}>Try {version}</a>
          {mayWrite && version !== current && (
            <button type="button" class="button small" onClick={() => void makeCurrent(version)}>
              Make {version} current
            </button>
          )}
        </span>
      ),
    },
  ]
  return (
    <>
      {mayWrite && (
        <a class="button" href={hrefOf(`/publish/${encodeURIComponent(name)}`)}>
          <Icon name="plus" /> New version
        </a>
      )}
      <Loaded resource={resource} skeleton={<Skeleton rows={4} />}>
        {({ versions, has_more: hasMore }) => (
          <>
            <PlainTable
              label="Versions"
              columns={columns.filter(({ label }) => label !== 'Release' || versions.some(({ release }) => release))}
              rows={versions}
              keyOf={({ version }) => version}
            />
            {hasMore && (
              <button
                type="button"
                class="button"
                onClick={() => setQuery({ before: String(versions.at(-1)?.version ?? '') })}
              >
                Older
              </button>
            )}
            {mayWrite && <Aliases endpoint={endpoint} onChanged={onChanged} versions={versions} />}
            {versions.length > 1 && <Compare name={name} versions={versions} />}
          </>
        )}
      </Loaded>
    </>
  )
}

/** Which one its deployment served when it was published, and whether calls find another one now. */
function Release({ version, pinned, served }: NonNullable<VersionSummary['release']>) {
  return (
    <span class="chips">
      <span class="number">{version}</span>
      {pinned && <span class="chip quiet">pinned</span>}
      {served !== version && <span class="chip">{served === null ? 'not served' : `${served} serves now`}</span>}
    </span>
  )
}

interface NamedProps {
  readonly version: number
  readonly current: number
  readonly aliases: Readonly<Record<string, number>>
}

function Named({ version, current, aliases }: NamedProps) {
  const names = Object.keys(aliases).filter((alias) => aliases[alias] === version)
  return (
    <span class="chips">
      <span class="number">{version}</span>
      {version === current && <span class="chip">current</span>}
      {names.map((alias) => (
        <span key={alias} class="chip quiet">
          {alias}
        </span>
      ))}
    </span>
  )
}

function Aliases({ endpoint, onChanged, versions }: TabProps & { readonly versions: readonly VersionSummary[] }) {
  const alias = useSignal('')
  const version = useSignal(endpoint.current_version)
  const deed = async (work: () => Promise<unknown>) => {
    await tell(work)
    onChanged()
  }
  return (
    <section aria-labelledby="aliases-head">
      <h2 id="aliases-head">Aliases</h2>
      <p class="dim">A name of a version that you move: callers ask for {endpoint.name}@stable.</p>
      <ul class="plain-list">
        {Object.entries(endpoint.aliases).map(([each, at]) => (
          <li key={each}>
            <code>{each}</code> is version {at}
            <button
              type="button"
              class="icon-button"
              aria-label={`Remove the alias ${each}`}
              onClick={() => void deed(() => removeAlias(endpoint.name, each))}
            >
              <Icon name="cross" />
            </button>
          </li>
        ))}
      </ul>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault()
          void deed(() => moveAlias(endpoint.name, alias.value.trim(), version.value))
        }}
      >
        <input
          type="text"
          class="add-input"
          aria-label="Alias"
          placeholder="stable"
          value={alias.value}
          onInput={(event) => {
            alias.value = event.currentTarget.value
          }}
        />
        <VersionChoice label="Version of the alias" versions={versions} at={version} />
        <button type="submit" class="button" disabled={alias.value.trim() === ''}>
          Set the alias
        </button>
      </form>
    </section>
  )
}

interface VersionChoiceProps {
  readonly label: string
  readonly versions: readonly VersionSummary[]
  readonly at: { value: number }
}

function VersionChoice({ label, versions, at }: VersionChoiceProps) {
  return (
    <select
      class="add-input"
      aria-label={label}
      value={String(at.value)}
      onChange={(event) => {
        at.value = Number(event.currentTarget.value)
      }}
    >
      {versions.map(({ version }) => (
        <option key={version} value={String(version)}>
          version {version}
        </option>
      ))}
    </select>
  )
}

function Compare({ name, versions }: { readonly name: string; readonly versions: readonly VersionSummary[] }) {
  const from = useSignal(versions[1].version)
  const to = useSignal(versions[0].version)
  const asked = `${from.value} ${to.value}`
  const resource = useResource(`compare ${name} ${asked}`, (signal) =>
    compareVersions(name, String(from.value), String(to.value), signal),
  )
  return (
    <section aria-labelledby="compare-head">
      <h2 id="compare-head">Compare</h2>
      <div class="row">
        <VersionChoice label="From" versions={versions} at={from} />
        <VersionChoice label="To" versions={versions} at={to} />
      </div>
      <Loaded key={asked} resource={resource} skeleton={<Skeleton rows={2} />}>
        {(differences) => (
          <>
            <p class="dim">{differences.length === 0 ? 'No difference.' : plural(differences.length, 'difference')}</p>
            <ul>
              {differences.map(({ message, breaking }, index) => (
                <li key={index} class={breaking ? 'failed-text' : ''}>
                  <Words text={message} />
                  {breaking && ' (breaks callers)'}
                </li>
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </section>
  )
}
