/** How the engines stand, asked again when the stream says that one changed, or that a job began or ended. */
import { getEngines } from '../../api/engines.ts'
import { Icon } from '../../components/icon.tsx'
import { hrefOf } from '../../routes.ts'
import { counts, engineNews, greetings, polls } from '../../state/live/live.ts'
import { useReloadOn, useResource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'
import { engineWords } from '../../text/engine-words.ts'

export function EngineLine() {
  const resource = useResource('engines', getEngines)
  useReloadOn(`${engineNews.value} ${greetings.value} ${polls.value} ${counts.value?.running}`, resource.reload)
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
