/** How the engines stand, asked again when the stream says that one changed, or that a job began or ended. */
import { useEffect } from 'preact/hooks'
import { type EngineFigures, getEngines } from '../../api/engines.ts'
import { Icon, type IconName } from '../../components/icon.tsx'
import { hrefOf } from '../../routes.ts'
import { counts, engineNews, greetings, polls } from '../../state/live/live.ts'
import { useResource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'
import { plural } from '../../text/format.ts'

export function EngineLine() {
  const resource = useResource('engines', getEngines)
  const mark = `${engineNews.value} ${greetings.value} ${polls.value} ${counts.value?.running}`
  useEffect(() => {
    if (resource.at.peek() !== null) resource.reload()
  }, [mark])
  const { value: figures } = resource.data
  // A line that says nothing yet takes no room; its failure is that of the whole page, which says so.
  if (figures === null) return null
  const { icon, text, colour } = engineWords(figures)
  const inside = (
    <>
      <span data-status={colour}>
        <Icon name={icon} />
      </span>{' '}
      {text}
    </>
  )
  return session.value?.operator === true ? (
    <a class="engine-line" href={hrefOf('/operator/engines')}>
      {inside}
    </a>
  ) : (
    <p class="engine-line">{inside}</p>
  )
}

interface EngineWords {
  readonly icon: IconName
  readonly colour: 'succeeded' | 'running' | 'canceling' | 'failed'
  readonly text: string
}

export function engineWords({ ready, busy, starting, away, running, slots }: EngineFigures): EngineWords {
  const taking = ready + busy
  const load = `${running} of ${plural(slots, 'slot')} in use`
  const rest = [starting > 0 && `${starting} starting`, away > 0 && `${away} away`].filter(Boolean).join(', ')
  const more = rest === '' ? '' : `, ${rest}`
  if (taking === 0 && starting > 0)
    return {
      icon: 'clock',
      colour: 'running',
      text: `${plural(starting, 'engine')} starting${away > 0 ? `, ${away} away` : ''}`,
    }
  if (taking === 0)
    return {
      icon: 'warn',
      colour: 'failed',
      text: away === 0 ? 'no engine: jobs wait until there is one' : `no engine takes jobs, ${away} away`,
    }
  if (away > 0)
    return { icon: 'warn', colour: 'canceling', text: `${plural(taking, 'engine')} at work${more} · ${load}` }
  return { icon: 'check', colour: 'succeeded', text: `${plural(taking, 'engine')} at work${more} · ${load}` }
}
