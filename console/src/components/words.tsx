/** A text that somebody else wrote: as text, with hidden characters shown as marks, and in a direction of its own. */
import { toSegments } from '../text/marks.ts'

export function Words({ text, isBlock = false }: { readonly text: string; readonly isBlock?: boolean }) {
  const segments = toSegments(text, { isBlock })
  if (segments.length === 1 && !segments[0].isMark) return <bdi>{text}</bdi>
  return (
    <bdi>
      {segments.map((segment, index) =>
        segment.isMark ? (
          <span key={index} class="mark">
            {segment.text}
          </span>
        ) : (
          segment.text
        ),
      )}
    </bdi>
  )
}
