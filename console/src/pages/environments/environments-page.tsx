/** Environments: the deployments that serve releases, and the builds that releases are cut from. */
import type { ComponentChildren } from 'preact'
import { type BuildRow, type Deployment, listBuilds, listDeployments } from '../../api/environments.ts'
import { EmptyState, Loaded, Skeleton, type StateLook, StatePill } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { Ago, shortId, Words } from '../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { usePolled, useResource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'

/** Of deployments, of releases, and of a release on one target. */
const LOOKS: Readonly<Record<string, StateLook>> = {
  ready: ['check', 'Ready', 'succeeded'],
  complete: ['check', 'Complete', 'succeeded'],
  failed: ['cross', 'Failed', 'failed'],
  unhealthy: ['warn', 'Unhealthy', 'failed'],
  stop_failed: ['warn', 'Not stopped', 'failed'],
  deleted: ['cross', 'Deleted', 'canceled'],
  stopped: ['pause', 'Stopped', 'canceled'],
  stopping: ['pause', 'Stopping', 'canceling'],
  queued: ['clock', 'Waiting', 'queued'],
  building: ['clock', 'Being made', 'running'],
  provisioning: ['clock', 'Coming up', 'running'],
  starting: ['clock', 'Starting', 'running'],
}

export function EnvironmentState({ status }: { readonly status: string }) {
  return <StatePill look={LOOKS[status] ?? ['dots', status, 'queued']} />
}

export const buildHref = (id: string, release?: string) =>
  hrefOf(`/environments/builds/${encodeURIComponent(id)}${release === undefined ? '' : `?release=${release}`}`)

/** Why something failed, in the service's words, whose lines stay lines. */
export function Reason({ text, title }: { readonly text: string; readonly title?: string }) {
  return (
    <div class="error-box">
      {title !== undefined && <p>{title}</p>}
      <p class="error-box-message reason">
        <Words text={text} isBlock />
      </p>
    </div>
  )
}

/** What the pages below `/environments` have around them; those who may not are not asked for. */
export function BelowEnvironments({ isAllowed, children }: { isAllowed: boolean; children: ComponentChildren }) {
  return (
    <section class="page environments">
      <a class="dim back" href={hrefOf('/environments')}>
        ← Environments
      </a>
      {isAllowed ? children : <NotForThisAccount />}
    </section>
  )
}

function NotForThisAccount() {
  return (
    <>
      <h1>Environments</h1>
      <EmptyState title="Not for this account">
        <p class="dim">
          Whoever makes builds runs code on the machines of this service: its operator names the accounts that may, with
          the setting <code>builds</code>.
        </p>
      </EmptyState>
    </>
  )
}

export function EnvironmentsPage() {
  const { environments = false, deployments = false } = session.value?.features ?? {}
  return (
    <section class="page environments">
      {environments ? (
        <>
          <h1>Environments</h1>
          {deployments && <Deployments />}
          <Builds />
        </>
      ) : (
        <NotForThisAccount />
      )}
    </section>
  )
}

const toColumns = (nameOf: (buildId: string) => string): readonly PlainColumn<Deployment>[] => [
  {
    label: 'Deployment',
    cell: ({ id, name }) => <a href={hrefOf(`/environments/deployments/${encodeURIComponent(id)}`)}>{name}</a>,
  },
  {
    label: 'State',
    cell: ({ status, error, pendingUpdate }) => (
      <>
        <EnvironmentState status={status} />
        {pendingUpdate !== null && (
          <div class="dim">
            {pendingUpdate.kind} {pendingUpdate.status === 'failed' ? 'failed' : 'on its way'}
          </div>
        )}
        {(error ?? pendingUpdate?.error ?? null) !== null && (
          <div class="failed-text one-line">
            <Words text={error ?? pendingUpdate?.error ?? ''} />
          </div>
        )}
      </>
    ),
  },
  {
    label: 'Build',
    cell: ({ buildId }) => (
      <a href={buildHref(buildId)}>
        <Words text={nameOf(buildId)} />
      </a>
    ),
  },
  { label: 'Release', cell: ({ releaseVersion }) => releaseVersion, isNumber: true },
  {
    label: 'Engines',
    cell: ({ serving }) => (serving === null ? <span class="dim">–</span> : serving.capacity.ready),
    isNumber: true,
  },
  { label: 'Waiting jobs', cell: ({ serving }) => serving?.jobsInQueue ?? <span class="dim">–</span>, isNumber: true },
]

function Deployments() {
  const after = query.value.get('after')
  // The same question as that of the list below.
  const builds = useBuilds(null)
  const nameOf = (buildId: string) =>
    builds.data.value?.builds.find(({ id }) => id === buildId)?.name ?? shortId(buildId)
  const resource = usePolled(`environments deployments ${after}`, (signal) => listDeployments(after, signal))
  return (
    <section aria-labelledby="environment-deployments">
      <h2 id="environment-deployments">Deployments</h2>
      <Loaded key={after} resource={resource} skeleton={<Skeleton rows={2} />}>
        {({ deployments, nextCursor }) => {
          const live = deployments.filter(({ deletedAt }) => deletedAt === null)
          return (
            <>
              {live.length === 0 ? (
                <p class="dim">
                  None{after === null ? ' yet' : ' further'}. <code>atelier env up</code> makes one of a build's newest
                  release.
                </p>
              ) : (
                <PlainTable label="Deployments" columns={toColumns(nameOf)} rows={live} keyOf={({ id }) => id} />
              )}
              <Further cursor={nextCursor} name="after" />
            </>
          )
        }}
      </Loaded>
    </section>
  )
}

export function Further({ cursor, name }: { readonly cursor: string | null; readonly name: string }) {
  if (cursor === null) return null
  return (
    <button type="button" class="button" onClick={() => setQuery({ [name]: cursor })}>
      Further ones
    </button>
  )
}

const BUILD_COLUMNS: readonly PlainColumn<BuildRow>[] = [
  {
    label: 'Build',
    cell: ({ id, name, description }) => (
      <>
        <a href={buildHref(id)}>
          <Words text={name} />
        </a>
        {description !== '' && (
          <div class="dim one-line">
            <Words text={description} />
          </div>
        )}
      </>
    ),
  },
  { label: 'Changed', cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
  { label: 'Packs', cell: ({ numCustomNodes }) => numCustomNodes, isNumber: true },
  { label: 'Models', cell: ({ numModels }) => numModels, isNumber: true },
]

function useBuilds(cursor: string | null) {
  return useResource(`environments builds ${cursor}`, (signal) => listBuilds(cursor, signal))
}

function Builds() {
  const cursor = query.value.get('cursor')
  const resource = useBuilds(cursor)
  return (
    <section aria-labelledby="environment-builds">
      <h2 id="environment-builds">Builds</h2>
      <Loaded key={cursor} resource={resource} skeleton={<Skeleton rows={3} />}>
        {({ builds, nextCursor }) =>
          builds.length === 0 ? (
            <EmptyState title="No builds yet">
              <p class="dim">
                A build says which ComfyUI, packs and models an engine runs; what is cut from it, a release, never
                changes. <code>atelier env init</code> begins one.
              </p>
            </EmptyState>
          ) : (
            <>
              <PlainTable label="Builds" columns={BUILD_COLUMNS} rows={builds} keyOf={({ id }) => id} />
              <Further cursor={nextCursor} name="cursor" />
            </>
          )
        }
      </Loaded>
    </section>
  )
}
