import { nothing } from 'lit';
import { Directive, directive, type ElementPart, type PartInfo, PartType } from 'lit/directive.js';

/** CSS values by custom property name. */
type Values = Readonly<Record<`--${string}`, string>>;

class VarsDirective extends Directive {
  constructor(info: PartInfo) {
    super(info);
    if (info.type !== PartType.ELEMENT) throw new TypeError('vars() belongs on an element.');
  }

  render(_values: Values): typeof nothing {
    return nothing;
  }

  override update(part: ElementPart, [values]: [Values]): typeof nothing {
    const element = part.element;
    if (element instanceof HTMLElement || element instanceof SVGElement) {
      for (const [name, value] of Object.entries(values)) element.style.setProperty(name, value);
    }
    return nothing;
  }
}

/** Sets custom properties through the style object: the panel's CSP forbids `style` attributes. */
export const vars = directive(VarsDirective);
