/** One build: what it says, its newest release or the one in the address, why that failed, what its builder said, and all the others. */
import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import {
  type Artifact,
  type Build,
  getBuild,
  getLog,
  getRelease,
  listReleases,
  type ReleaseRow,
} from '../../api/environments.ts'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { type PlainColumn, PlainTable } from '../../components/table/plain-table.tsx'
import { Ago, Duration, KeyValue, saveText, Words } from '../../components/text.tsx'
import { query } from '../../routes.ts'
import { tell } from '../../state/deeds.ts'
import { usePolled, useReloadOn, useResource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'
import { formatBytes } from '../../text/format.ts'
import { toTail, withoutTerminalCodes } from '../../text/log-text.ts'
import { BelowEnvironments, buildHref, EnvironmentState, Further, Reason } from './environments-page.tsx'

export function BuildPage({ id = '' }: Readonly<Record<string, string>>) {
  return (
    <BelowEnvironments isAllowed={session.value?.features.environments ?? false}>
      <Asked key={id} id={id} />
    </BelowEnvironments>
  )
}

function Asked({ id }: { readonly id: string }) {
  const resource = useResource(`environments build ${id}`, (signal) => getBuild(id, signal))
  return (
    <>
      {resource.data.value === null && <h1>Build</h1>}
      <Loaded resource={resource} skeleton={<Skeleton rows={2} />}>
        {(build) => (
          <>
            <About build={build} />
            <Releases buildId={id} />
          </>
        )}
      </Loaded>
    </>
  )
}

function About({ build: { name, description, definition, updatedAt } }: { readonly build: Build }) {
  const { baseComfyVersion, customNodes = [], models = [] } = definition
  return (
    <>
      <h1>
        <Words text={name} />
      </h1>
      {description !== '' && (
        <p>
          <Words text={description} />
        </p>
      )}
      <KeyValue
        pairs={[
          ['ComfyUI', baseComfyVersion === undefined ? 'not chosen yet' : <Words key="v" text={baseComfyVersion} />],
          [
            'Packs',
            customNodes.length === 0 ? 'none' : <Words text={customNodes.map((pack) => pack.name).join(', ')} />,
          ],
          ['Models', models.length],
          ['Changed', <Ago key="changed" at={updatedAt} />],
        ]}
      />
    </>
  )
}

function Releases({ buildId }: { readonly buildId: string }) {
  const cursor = query.value.get('cursor')
  const chosen = query.value.get('release')
  const resource = usePolled(`environments releases ${buildId} ${cursor}`, (signal) =>
    listReleases(buildId, cursor, signal),
  )
  const columns: readonly PlainColumn<ReleaseRow>[] = [
    {
      label: 'Release',
      cell: ({ id, version }) => (
        <a href={buildHref(buildId, id)} aria-current={id === chosen ? 'true' : undefined}>
          Release {version}
        </a>
      ),
    },
    { label: 'State', cell: (release) => <EnvironmentState status={stateOf(release)} /> },
    { label: 'Cut', cell: ({ createdAt }) => <Ago at={createdAt} /> },
  ]
  return (
    <Loaded key={cursor} resource={resource} skeleton={<Skeleton rows={4} />}>
      {({ releases, nextCursor }) => {
        const id = chosen ?? releases[0]?.id
        const row = releases.find((each) => each.id === id)
        return (
          <>
            {id !== undefined && <OneRelease key={id} id={id} mark={row?.status} />}
            <section aria-labelledby="environment-releases">
              <h2 id="environment-releases">All releases</h2>
              {releases.length === 0 ? (
                <p class="dim">
                  None yet: <code>atelier env release</code> cuts one.
                </p>
              ) : (
                <PlainTable label="All releases" columns={columns} rows={releases} keyOf={(release) => release.id} />
              )}
              <Further cursor={nextCursor} name="cursor" />
            </section>
          </>
        )
      }}
    </Loaded>
  )
}

/** One that is done and can be deployed nowhere has failed, whatever its record calls it. */
function stateOf({ status, deployable }: ReleaseRow): string {
  if (status !== 'complete') return status
  return deployable ? 'ready' : 'failed'
}

/** `mark`: how the list says that it stands. */
function OneRelease({ id, mark }: { readonly id: string; readonly mark: string | undefined }) {
  const resource = useResource(`environments release ${id}`, (signal) => getRelease(id, signal))
  useReloadOn(mark, resource.reload)
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={2} />}>
      {(release) => (
        <section aria-labelledby="environment-release">
          <div class="section-head">
            <h2 id="environment-release">Release {release.version}</h2>
            <EnvironmentState status={stateOf(release)} />
          </div>
          {release.artifacts.map((artifact) => (
            <OneArtifact key={`${artifact.os}/${artifact.gpu}`} releaseId={id} artifact={artifact} />
          ))}
        </section>
      )}
    </Loaded>
  )
}

interface ArtifactProps {
  readonly releaseId: string
  readonly artifact: Artifact
}

function OneArtifact({ releaseId, artifact }: ArtifactProps) {
  const { os, gpu, status, failureReason, waitingReason, startedAt, finishedAt, sizeBytes } = artifact
  const isOpen = useSignal(status === 'failed')
  return (
    <div class="card artifact">
      <h3 class="row">
        {os}/{gpu} <EnvironmentState status={status} />
        {startedAt !== null && (
          <span class="dim">
            <Duration from={startedAt} to={finishedAt} />
            {sizeBytes !== null && ` · ${formatBytes(sizeBytes)} without its models`}
          </span>
        )}
      </h3>
      {failureReason !== null && <Reason text={failureReason} />}
      {waitingReason !== null && (
        <p class="warning">
          <Words text={waitingReason} />
        </p>
      )}
      {status !== 'queued' && (
        <details
          open={isOpen.value}
          onToggle={(event) => {
            isOpen.value = event.currentTarget.open
          }}
        >
          <summary>What its builder said</summary>
          {isOpen.value && <BuildLog releaseId={releaseId} artifact={artifact} />}
        </details>
      )}
    </div>
  )
}

function BuildLog({ releaseId, artifact }: ArtifactProps) {
  const { os, gpu, status } = artifact
  // A log may have megabytes: what is kept in the page is its end.
  const resource = useResource(`environments log ${releaseId} ${os} ${gpu}`, async (signal) => {
    const { log, truncated } = await getLog(releaseId, artifact, signal)
    return { ...toTail(withoutTerminalCodes(log)), truncated }
  })
  useReloadOn(status, resource.reload)
  const save = () =>
    tell(async () =>
      saveText(`${releaseId}-${os}-${gpu}.log`, (await getLog(releaseId, artifact)).log, 'text/plain;charset=utf-8'),
    )
  return (
    <Loaded resource={resource} skeleton={<Skeleton rows={2} />}>
      {({ text, isCut, truncated }) =>
        text === '' ? (
          <p class="dim">Nothing{status === 'building' ? ' yet' : ''}.</p>
        ) : (
          <>
            <div class="row">
              {status === 'building' && (
                <button type="button" class="button small" onClick={resource.reload}>
                  Read it again
                </button>
              )}
              <button type="button" class="button small" onClick={() => void save()}>
                Download
              </button>
              <span class="dim">
                {isCut && 'its end; the download has all of it'}
                {truncated && ' · the service kept its beginning alone: it was too long'}
              </span>
            </div>
            <LogEnd text={text} label={`Log of ${os}/${gpu}`} />
          </>
        )
      }
    </Loaded>
  )
}

/** Opened at its end, where the cause is. */
function LogEnd({ text, label }: { readonly text: string; readonly label: string }) {
  const place = useRef<HTMLPreElement>(null)
  useLayoutEffect(() => {
    if (place.current !== null) place.current.scrollTop = place.current.scrollHeight
  }, [text])
  return (
    <pre ref={place} class="build-log" role="log" aria-live="off" aria-label={label} tabIndex={0}>
      <Words text={text} isBlock />
    </pre>
  )
}
