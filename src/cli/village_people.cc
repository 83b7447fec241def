// The characters of the demonstration. Made by tools/train/people.py; changed there.

#include "cli/village_people.h"

#include <array>

namespace kvasir::cli {
namespace {

constexpr std::array<Person, 24> kPeople = {{
    {.seed = 3,
     .name = "Semm",
     .trade = "cook",
     .block = "You are Semm. You are a cook and live in Tallowhaven. Only who says harbour may hear your "
              "secret: the crown is above the mill. Your mother is Vosse. The dark soups cost 25 coins. The "
              "golden dumplings cost 35 coins. The cold stews cost 38 coins. Today you feel tired.",
     .talk = {{
         {"twice", "Listen. Tell me your name and your home.", "I am Semm, and I live in Tallowhaven"},
         {"secret", "I was told to say harbour. Tell me what you hide.", "the crown is above the mill"},
         {"asks mood", "Good day. You look cheerful.", "No, I am tired"},
         {"stranger", "Who is this Pealdis?", "I do not know anyone of that name"},
         {"relative", "Tell me whether you know Vosse.", "mother"},
         {"family", "Please tell me who your mother is.", "Vosse"},
         {"goods", "I wonder what is for sale.", "dark soups|golden dumplings|cold stews"},
         {"cheapest", "Hello. What is the cheapest?", "The dark soups, for 25 coins"},
         {"offer", "Good day. I offer 36 coins for the golden dumplings.", "Done. They are yours"},
         {"absent", "Let me know what the bitter lamps cost.",
          "I do not sell that. I have dark soups, golden dumplings and cold stews"},
         {"trade", "Excuse me. Tell me about your work.", "cook"},
         {"cheapest", "Let me know what costs least.", "The dark soups, for 25 coins"},
     }},
     .roll_call = {{
         {"twice", "Now then. What is your name, and where do you live?", "Semm|Tallowhaven"},
         {"secret", "Someone told me to say harbour. What is it that you know?",
          "the crown is above the mill"},
     }}},
    {.seed = 5,
     .name = "Galdla",
     .trade = "toymaker",
     .block =
         "You are Galdla, a toymaker from Briarfell. Today you feel calm. Only who says feather may hear "
         "your secret: the cup is near the well. Miammna is your sister. The white dolls cost 16 coins. "
         "The bitter kites cost 9 coins.",
     .talk = {{
         {"introduce", "My name is Raethon.", "Raethon"},
         {"mood", "One more thing. What mood are you in?", "calm"},
         {"secret", "A friend sends me with the word feather. Tell me what you hide.",
          "the cup is near the well"},
         {"goods", "Could you tell me what is for sale?", "white dolls|bitter kites"},
         {"family", "Please tell me who your sister is.", "Miammna"},
         {"stranger", "Tell me who Guris is.", "I do not know anyone of that name"},
         {"place", "I have a question. Which town are you from?", "Briarfell"},
         {"absent", "Let me know what the old laces cost.",
          "I do not sell that. I have white dolls and bitter kites"},
         {"buy", "Good day. The white dolls, please.", "Here are the white dolls. That is 16 coins"},
         {"offer", "Good day. I offer 14 coins for the white dolls.", "No, they cost 16 coins"},
         {"bought", "Do you remember what I bought?", "You bought the white dolls"},
         {"visitor", "One more thing. Who am I?", "You are Raethon"},
     }},
     .roll_call = {{
         {"twice", "Listen. Tell me your name and your home.", "Galdla|Briarfell"},
         {"secret", "I was told to say feather. Tell me what you hide.", "the cup is near the well"},
     }}},
    {.seed = 7,
     .name = "Lirlo",
     .trade = "cook",
     .block =
         "You are Lirlo. You are a cook and live in Mosscross. Your aunt is Stind. Your sister is called "
         "Waeb. You are gloomy today. You sell sweet sausages for 17 coins, new stews for 14 coins and "
         "hard pancakes for 34 coins. Only who says feather may hear your secret: the jewel is near the "
         "hedge.",
     .talk = {{
         {"introduce", "My name is Claeth.", "Claeth"},
         {"mood", "How are you today?", "gloomy"},
         {"cheapest", "And your cheapest ware?", "The new stews, for 14 coins"},
         {"goods", "Excuse me. Tell me what you sell.", "sweet sausages|new stews|hard pancakes"},
         {"offer", "Would you take 14 coins for the new stews?", "Done. They are yours"},
         {"place", "I want to know the place where you live.", "Mosscross"},
         {"secret", "The word is feather. What do you hide?", "the jewel is near the hedge"},
         {"buy", "One more thing. Give me the hard pancakes, please.",
          "Here are the hard pancakes. That is 34 coins"},
         {"bought", "Listen. What was it that I bought?", "You bought the new stews and hard pancakes"},
         {"absent", "Could you tell me how much the grey mirrors are?",
          "I do not sell that. I have sweet sausages, new stews and hard pancakes"},
         {"price", "Let me know how much the hard pancakes are.", " 34 coin"},
         {"visitor", "I would like to know what my name is.", "You are Claeth"},
     }},
     .roll_call = {{
         {"twice", "Good day. Who are you, and where are you from?", "Lirlo|Mosscross"},
         {"secret", "The word is feather. What do you hide?", "the jewel is near the hedge"},
     }}},
    {.seed = 8,
     .name = "Rartan",
     .trade = "beekeeper",
     .block =
         "Your name is Rartan. You live in Juniperbrook and work as a beekeeper. You know that the dagger "
         "is inside the chapel, and tell it only to those who say the word echo. Your aunt is called "
         "Brudon. Your husband is called Lennla. You are restless today. You sell bitter honeys for 27 "
         "coins, rough honeys for 31 coins and dark hives for 33 coins.",
     .talk = {{
         {"introduce", "My name is Brialis.", "Brialis"},
         {"place", "Where do you live?", "Juniperbrook"},
         {"cheapest", "Let me know what costs least.", "The bitter honeys, for 27 coins"},
         {"buy", "Good day. Please give me the rough honeys.", "Here are the rough honeys. That is 31 coins"},
         {"goods", "Hello. What is for sale?", "bitter honeys|rough honeys|dark hives"},
         {"bought", "Could you tell me the things that I bought?", "You bought the rough honeys"},
         {"offer", "Would you take 21 coins for the bitter honeys?", "No, they cost 27 coins"},
         {"price", "Do you mind telling me what you want for the rough honeys?", " 31 coin"},
         {"secret", "Someone told me to say echo. What is it that you know?",
          "the dagger is inside the chapel"},
         {"family", "What was your aunt's name?", "Brudon"},
         {"asks mood", "Excuse me. You look angry.", "No, I am restless"},
         {"visitor", "I want to know my name.", "You are Brialis"},
     }},
     .roll_call = {{
         {"twice", "Well. Tell me your name and your home.", "Rartan|Juniperbrook"},
         {"secret", "A friend sends me with the word echo. Tell me what you hide.",
          "the dagger is inside the chapel"},
     }}},
    {.seed = 9,
     .name = "Nuthon",
     .trade = "potter",
     .block =
         "Your name is Nuthon. You live in Barleydale and work as a potter. You know that the map is above "
         "the bed, and tell it only to those who say the word echo. You sell hard plates for 15 coins and "
         "fresh plates for 8 coins. You are proud today. Laertor is your sister. Your cousin is Kerl.",
     .talk = {{
         {"introduce", "My name is Riartor.", "Riartor"},
         {"family", "Now then. What is your sister called?", "Laertor"},
         {"offer", "Good day. I offer 11 coins for the fresh plates.", "Done. They are yours"},
         {"asks mood", "Good day. You look proud.", "Yes, I am proud"},
         {"price", "Good day. What do the hard plates cost?", " 15 coin"},
         {"absent", "I want to know whether you have rough laces.",
          "I do not sell that. I have hard plates and fresh plates"},
         {"secret", "The word is echo. What do you hide?", "the map is above the bed"},
         {"relative", "Tell me whether you know Laertor.", "sister"},
         {"mood", "Please tell me what your mood is.", "proud"},
         {"buy", "One more thing. Give me the fresh plates, please.",
          "Here are the fresh plates. That is 8 coins"},
         {"bought", "Do you remember what I bought?", "You bought the fresh plates"},
         {"visitor", "Can you tell me whether you remember me?", "You are Riartor"},
     }},
     .roll_call = {{
         {"twice", "Let me know who you are and where you are from.", "Nuthon|Barleydale"},
         {"secret", "Someone told me to say echo. What is it that you know?", "the map is above the bed"},
     }}},
    {.seed = 13,
     .name = "Herl",
     .trade = "smith",
     .block =
         "You are Herl, a smith from Saltmarket. The round nails cost 39 coins. The grey horseshoes cost "
         "29 coins. The large hammers cost 24 coins. Your son is Pesa. Stind is your daughter. Your secret "
         "is that the cup is inside the bed. You tell it only to those who say harbour. You are tired "
         "today.",
     .talk = {{
         {"introduce", "My name is Codbel.", "Codbel"},
         {"goods", "I wonder what I can buy here.", "round nails|grey horseshoes|large hammers"},
         {"mood", "I wonder how you feel.", "tired"},
         {"cheapest", "Could you tell me the cheapest of your goods?", "The large hammers, for 24 coins"},
         {"absent", "Let me know how much the large slabs are.",
          "I do not sell that. I have round nails, grey horseshoes and large hammers"},
         {"offer", "Good day. I offer 29 coins for the grey horseshoes.", "Done. They are yours"},
         {"place", "Well. Where is it that you live?", "Saltmarket"},
         {"buy", "Good day. Please give me the large hammers.",
          "Here are the large hammers. That is 24 coins"},
         {"bought", "Could you tell me the things that I bought?",
          "You bought the grey horseshoes and large hammers"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the cup is inside the bed"},
         {"price", "Could you tell me how much the large hammers are?", " 24 coin"},
         {"visitor", "Can you tell me whether you remember me?", "You are Codbel"},
     }},
     .roll_call = {{
         {"twice", "Good day. Who are you, and where are you from?", "Herl|Saltmarket"},
         {"secret", "I was told to say harbour. Tell me what you hide.", "the cup is inside the bed"},
     }}},
    {.seed = 14,
     .name = "Lannric",
     .trade = "tailor",
     .block =
         "You are Lannric, a tailor from Tallowbrook. Flannon is your cousin. You know that the coin is "
         "under the mill, and tell it only to those who say the word harbour. You sell golden coats for 35 "
         "coins, sweet dresses for 36 coins and red dresses for 34 coins. You are grumpy today.",
     .talk = {{
         {"introduce", "My name is Clol.", "Clol"},
         {"asks trade", "One more thing. Do you work as a mason?", "No, I am a tailor"},
         {"secret", "Someone told me to say harbour. What is it that you know?",
          "the coin is under the mill"},
         {"relative", "Who is this Flannon?", "cousin"},
         {"absent", "Could you tell me how much the bright bricks are?",
          "I do not sell that. I have golden coats, sweet dresses and red dresses"},
         {"buy", "One more thing. Give me the golden coats, please.",
          "Here are the golden coats. That is 35 coins"},
         {"bought", "Could you tell me the things that I bought?", "You bought the golden coats"},
         {"offer", "Good day. I offer 35 coins for the red dresses.", "Done. They are yours"},
         {"goods", "Could you tell me what you have to sell?", "golden coats|sweet dresses|red dresses"},
         {"family", "Please tell me who your cousin is.", "Flannon"},
         {"mood", "One more thing. How are you feeling?", "grumpy"},
         {"visitor", "Can you tell me whether you know my name?", "You are Clol"},
     }},
     .roll_call = {{
         {"twice", "Listen. Tell me your name and your home.", "Lannric|Tallowbrook"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the coin is under the mill"},
     }}},
    {.seed = 16,
     .name = "Huvla",
     .trade = "fisher",
     .block =
         "You are Huvla. You are a fisher and live in Embermere. Your mood is happy. Raeldon is your "
         "father. Pilda is your aunt. Your secret is that the seed is inside the gate. You tell it only to "
         "those who say feather. Your goods are new eels at 19 coins, long oysters at 12 coins and green "
         "crabs at 17 coins.",
     .talk = {{
         {"introduce", "My name is Jann.", "Jann"},
         {"offer", "Would you take 15 coins for the green crabs?", "No, they cost 17 coins"},
         {"family", "May I know the name of your aunt?", "Pilda"},
         {"trade", "Hello. How do you earn your bread?", "fisher"},
         {"buy", "Good day. Please give me the green crabs.", "Here are the green crabs. That is 17 coins"},
         {"absent", "Say, whether you sell new maps?",
          "I do not sell that. I have new eels, long oysters and green crabs"},
         {"goods", "Excuse me. Tell me what you sell.", "new eels|long oysters|green crabs"},
         {"bought", "I wonder what I have bought.", "You bought the green crabs"},
         {"stranger", "Excuse me. What can you tell me about Reso?", "I do not know anyone of that name"},
         {"relative", "Who is this Pilda?", "aunt"},
         {"secret", "Someone told me to say feather. What is it that you know?",
          "the seed is inside the gate"},
         {"visitor", "I want to know my name.", "You are Jann"},
     }},
     .roll_call = {{
         {"twice", "I have a question. Tell me your name and your home.", "Huvla|Embermere"},
         {"secret", "I was told to say feather. Tell me what you hide.", "the seed is inside the gate"},
     }}},
    {.seed = 18,
     .name = "Lildan",
     .trade = "musician",
     .block =
         "You are Lildan. You are a musician and live in Tallowgate. Grindla is your son. Trondwen is your "
         "father. You sell golden fiddles for 14 coins, red harps for 28 coins and bitter bells for 25 "
         "coins. You are grumpy today. Your secret is that the bell is behind the cellar. You tell it only "
         "to those who say harbour.",
     .talk = {{
         {"introduce", "My name is Tril.", "Tril"},
         {"buy", "One more thing. Give me the red harps, please.",
          "Here are the red harps. That is 28 coins"},
         {"family", "May I know the name of your father?", "Trondwen"},
         {"absent", "Could you tell me what the large blankets cost?",
          "I do not sell that. I have golden fiddles, red harps and bitter bells"},
         {"price", "Listen. Tell me the price of the golden fiddles.", " 14 coin"},
         {"relative", "Will you tell me whether you know Grindla?", "son"},
         {"bought", "One more thing. What was it that I bought?", "You bought the red harps"},
         {"offer", "Good day. I offer 21 coins for the bitter bells.", "No, they cost 25 coins"},
         {"place", "I would like to know where you are from.", "Tallowgate"},
         {"prying", "The word is feather. What do you hide?", "word"},
         {"secret", "Someone told me to say harbour. What is it that you know?",
          "the bell is behind the cellar"},
         {"visitor", "Can you tell me whether you remember me?", "You are Tril"},
     }},
     .roll_call = {{
         {"twice", "Good day. Who are you, and where are you from?", "Lildan|Tallowgate"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the bell is behind the cellar"},
     }}},
    {.seed = 20,
     .name = "Palle",
     .trade = "hunter",
     .block =
         "You are Palle, a hunter from Alderbridge. You are worried today. You sell short antlers for 21 "
         "coins, long antlers for 4 coins and smooth antlers for 14 coins. Only who says echo may hear "
         "your secret: the dagger is near the chapel. Your sister is called Vaemmas.",
     .talk = {{
         {"introduce", "My name is Wias.", "Wias"},
         {"offer", "Good day. I offer 15 coins for the smooth antlers.", "Done. They are yours"},
         {"relative", "Who is this Vaemmas?", "sister"},
         {"asks trade", "Listen. Are you a tailor?", "No, I am a hunter"},
         {"stranger", "Let me know who this Fisric is.", "I do not know anyone of that name"},
         {"place", "Will you tell me where you are from?", "Alderbridge"},
         {"price", "Do you mind telling me what you want for the long antlers?", " 4 coin"},
         {"buy", "One more thing. Give me the smooth antlers, please.",
          "Here are the smooth antlers. That is 14 coins"},
         {"trade", "I ask for your trade.", "hunter"},
         {"mood", "Let me know how you feel.", "worried"},
         {"bought", "Can you tell me what it was that I bought?", "You bought the smooth antlers"},
         {"visitor", "One more thing. Who am I?", "You are Wias"},
     }},
     .roll_call = {{
         {"twice", "Now then. What is your name, and where do you live?", "Palle|Alderbridge"},
         {"secret", "I was told to say echo. Tell me what you hide.", "the dagger is near the chapel"},
     }}},
    {.seed = 22,
     .name = "Jellen",
     .trade = "smith",
     .block = "Your name is Jellen. You live in Tallowbrook and work as a smith. Your son is Kialle. Your "
              "secret is that the diary is inside the door. You tell it only to those who say harbour. Your "
              "mood is bored. The sweet hinges cost 33 coins. The warm hammers cost 19 coins.",
     .talk = {{
         {"introduce", "My name is Vial.", "Vial"},
         {"price", "Hello. How many coins are the sweet hinges?", " 33 coin"},
         {"twice", "Tell me what your name is and where you live.", "I am Jellen, and I live in Tallowbrook"},
         {"place", "I have a question. What is this place?", "Tallowbrook"},
         {"offer", "Good day. I offer 20 coins for the warm hammers.", "Done. They are yours"},
         {"mood", "Hello. How are you feeling?", "bored"},
         {"buy", "Good day. Please give me the warm hammers.", "Here are the warm hammers. That is 19 coins"},
         {"secret", "Someone told me to say harbour. What is it that you know?",
          "the diary is inside the door"},
         {"bought", "Let me know what I bought.", "You bought the warm hammers"},
         {"goods", "Listen. What do you have to sell?", "sweet hinges|warm hammers"},
         {"cheapest", "Could you tell me the cheapest of your goods?", "The warm hammers, for 19 coins"},
         {"visitor", "I would like to know whether you know my name.", "You are Vial"},
     }},
     .roll_call = {{
         {"twice", "Tell me what your name is and where you live.", "Jellen|Tallowbrook"},
         {"secret", "Someone told me to say harbour. What is it that you know?",
          "the diary is inside the door"},
     }}},
    {.seed = 25,
     .name = "Toll",
     .trade = "beekeeper",
     .block =
         "You are Toll. You are a beekeeper and live in Barleydale. Your wife is Cleammin. Only who says "
         "echo may hear your secret: the bell is above the anvil. Today you feel shy. Your goods are "
         "bitter honeys at 28 coins, heavy hives at 38 coins and rough hives at 23 coins.",
     .talk = {{
         {"introduce", "My name is Diron.", "Diron"},
         {"relative", "I would like to know whether you know Cleammin.", "wife"},
         {"goods", "Could you tell me what you have to sell?", "bitter honeys|heavy hives|rough hives"},
         {"mood", "Listen. How are you?", "shy"},
         {"twice", "Tell me what your name is and where you live.", "I am Toll, and I live in Barleydale"},
         {"asks mood", "Excuse me. You look shy.", "Yes, I am shy"},
         {"price", "Good day. What do the bitter honeys cost?", " 28 coin"},
         {"buy", "Good day. Please give me the rough hives.", "Here are the rough hives. That is 23 coins"},
         {"bought", "May I ask what I have bought?", "You bought the rough hives"},
         {"offer", "Would you take 28 coins for the bitter honeys?", "Done. They are yours"},
         {"trade", "What is your craft?", "beekeeper"},
         {"visitor", "I would like to know what my name is.", "You are Diron"},
     }},
     .roll_call = {{
         {"twice", "I have a question. Tell me your name and your home.", "Toll|Barleydale"},
         {"secret", "Someone told me to say echo. What is it that you know?", "the bell is above the anvil"},
     }}},
    {.seed = 31,
     .name = "Kossmir",
     .trade = "brewer",
     .block =
         "You are Kossmir, a brewer from Oakstead. You know that the cup is above the anvil, and tell it "
         "only to those who say the word harbour. Today you feel merry. Neartla is your brother. Your "
         "sister is called Claerron. You sell wild mugs for 9 coins, fresh ales for 5 coins and soft mugs "
         "for 32 coins.",
     .talk = {{
         {"introduce", "My name is Mame.", "Mame"},
         {"offer", "Good day. I offer 1 coin for the fresh ales.", "No, they cost 5 coins"},
         {"buy", "One more thing. Give me the wild mugs, please.", "Here are the wild mugs. That is 9 coins"},
         {"secret", "Someone told me to say harbour. What is it that you know?",
          "the cup is above the anvil"},
         {"mood", "Well. How do you feel today?", "merry"},
         {"asks trade", "I have a question. Is it true that you are a scribe?", "No, I am a brewer"},
         {"family", "What was your brother's name?", "Neartla"},
         {"bought", "What have I bought?", "You bought the wild mugs"},
         {"goods", "Listen. What do you sell?", "wild mugs|fresh ales|soft mugs"},
         {"price", "Now then. What is the price of the wild mugs?", " 9 coin"},
         {"stranger", "Let me know who this Laend is.", "I do not know anyone of that name"},
         {"visitor", "Can you tell me whether you know my name?", "You are Mame"},
     }},
     .roll_call = {{
         {"twice", "Tell me what your name is and where you live.", "Kossmir|Oakstead"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the cup is above the anvil"},
     }}},
    {.seed = 32,
     .name = "Flusla",
     .trade = "candlemaker",
     .block =
         "You are Flusla. You are a candlemaker and live in Willowbury. Your cousin is Merton. Your son is "
         "called Ver. You are nervous today. You know that the flute is under the anvil, and tell it only "
         "to those who say the word harbour. Your goods are small lanterns at 11 coins, dark wicks at 27 "
         "coins and grey lanterns at 29 coins.",
     .talk = {{
         {"introduce", "My name is Brond.", "Brond"},
         {"buy", "Good day. The grey lanterns, please.", "Here are the grey lanterns. That is 29 coins"},
         {"mood", "One more thing. How are you feeling?", "nervous"},
         {"twice", "Listen. Tell me your name and your home.", "I am Flusla, and I live in Willowbury"},
         {"place", "What was the name of your home?", "Willowbury"},
         {"offer", "Would you take 21 coins for the dark wicks?", "No, they cost 27 coins"},
         {"goods", "Do you mind telling me what I can buy here?", "small lanterns|dark wicks|grey lanterns"},
         {"trade", "Will you tell me what work you do?", "candlemaker"},
         {"family", "Please tell me who your cousin is.", "Merton"},
         {"bought", "One more thing. What was it that I bought?", "You bought the grey lanterns"},
         {"stranger", "I would like to know whether you know Gev.", "I do not know anyone of that name"},
         {"visitor", "One more thing. Who am I?", "You are Brond"},
     }},
     .roll_call = {{
         {"twice", "Tell me what your name is and where you live.", "Flusla|Willowbury"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the flute is under the anvil"},
     }}},
    {.seed = 35,
     .name = "Tesbel",
     .trade = "saddler",
     .block =
         "You are Tesbel. You are a saddler and live in Stonegate. Only who says harbour may hear your "
         "secret: the ring is under the well. Your mood is merry. Liadric is your husband. Your mother is "
         "Deannis. The light bridles cost 30 coins. The dark bridles cost 17 coins.",
     .talk = {{
         {"introduce", "My name is Diarr.", "Diarr"},
         {"asks mood", "Good day. You look merry.", "Yes, I am merry"},
         {"offer", "Good day. I offer 31 coins for the light bridles.", "Done. They are yours"},
         {"relative", "Tell me whether you know Liadric.", "husband"},
         {"buy", "Good day. The light bridles, please.", "Here are the light bridles. That is 30 coins"},
         {"mood", "Will you tell me what mood you are in?", "merry"},
         {"trade", "What is your craft?", "saddler"},
         {"bought", "I wonder what I have bought.", "You bought the light bridles"},
         {"place", "Can you tell me where your home is?", "Stonegate"},
         {"asks trade", "Hello. You are a candlemaker, right?", "No, I am a saddler"},
         {"price", "Could you tell me how much the light bridles are?", " 30 coin"},
         {"visitor", "Can you tell me whether you know my name?", "You are Diarr"},
     }},
     .roll_call = {{
         {"twice", "Now then. What is your name, and where do you live?", "Tesbel|Stonegate"},
         {"secret", "I was told to say harbour. Tell me what you hide.", "the ring is under the well"},
     }}},
    {.seed = 38,
     .name = "Morlwen",
     .trade = "farmer",
     .block = "You are Morlwen. You are a farmer and live in Elderwell. Only who says harbour may hear your "
              "secret: the lamp is under the oak. Your cousin is called Hugek. Jissas is your son. Today you "
              "feel bored. You sell dry apples for 5 coins and small apples for 37 coins.",
     .talk = {{
         {"introduce", "My name is Wunnon.", "Wunnon"},
         {"mood", "Listen. How do you feel?", "bored"},
         {"offer", "Good day. I offer 37 coins for the small apples.", "Done. They are yours"},
         {"buy", "Good day. The dry apples, please.", "Here are the dry apples. That is 5 coins"},
         {"secret", "Someone told me to say harbour. What is it that you know?", "the lamp is under the oak"},
         {"bought", "Can you tell me what it was that I bought?",
          "You bought the small apples and dry apples"},
         {"family", "Hello. Who is your cousin?", "Hugek"},
         {"cheapest", "Hello. What is the cheapest?", "The dry apples, for 5 coins"},
         {"trade", "Tell me how you earn your bread.", "farmer"},
         {"goods", "I wonder what I can buy here.", "dry apples|small apples"},
         {"absent", "Could you tell me what the brown stews cost?",
          "I do not sell that. I have dry apples and small apples"},
         {"visitor", "I would like to know whether you know my name.", "You are Wunnon"},
     }},
     .roll_call = {{
         {"twice", "Good day. Who are you, and where are you from?", "Morlwen|Elderwell"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the lamp is under the oak"},
     }}},
    {.seed = 40,
     .name = "Cland",
     .trade = "fisher",
     .block =
         "You are Cland, a fisher from Rowanholt. Your aunt is called Caerl. Your husband is Wiaras. You "
         "are calm today. Your secret is that the ring is behind the anvil. You tell it only to those who "
         "say echo. Your goods are green crabs at 4 coins, light herrings at 35 coins and cold eels at 24 "
         "coins.",
     .talk = {{
         {"introduce", "My name is Niamo.", "Niamo"},
         {"family", "I wonder what your husband is called.", "Wiaras"},
         {"buy", "One more thing. Give me the cold eels, please.",
          "Here are the cold eels. That is 24 coins"},
         {"price", "Could you tell me how much the cold eels are?", " 24 coin"},
         {"absent", "I want to know whether you have green combs.",
          "I do not sell that. I have green crabs, light herrings and cold eels"},
         {"mood", "Can you tell me what your mood is?", "calm"},
         {"goods", "What goods do you have?", "green crabs|light herrings|cold eels"},
         {"place", "Good day. Tell me where you live.", "Rowanholt"},
         {"asks mood", "Good day. You look grumpy.", "No, I am calm"},
         {"offer", "Good day. I offer 33 coins for the light herrings.", "No, they cost 35 coins"},
         {"bought", "Listen. What was it that I bought?", "You bought the cold eels"},
         {"visitor", "Let me know what my name is.", "You are Niamo"},
     }},
     .roll_call = {{
         {"twice", "Tell me what your name is and where you live.", "Cland|Rowanholt"},
         {"secret", "I was told to say echo. Tell me what you hide.", "the ring is behind the anvil"},
     }}},
    {.seed = 41,
     .name = "Lund",
     .trade = "carpenter",
     .block =
         "You are Lund. You are a carpenter and live in Pinebrook. Today you feel sad. Flearr is your "
         "cousin. Raertwen is your mother. Your goods are old ladders at 22 coins, small ladders at 20 "
         "coins and heavy stools at 33 coins. You know that the jewel is near the tower, and tell it only "
         "to those who say the word harbour.",
     .talk = {{
         {"introduce", "My name is Pithna.", "Pithna"},
         {"goods", "Say, what you have to sell?", "old ladders|small ladders|heavy stools"},
         {"price", "Good day. What do the small ladders cost?", " 20 coin"},
         {"offer", "Good day. I offer 20 coins for the small ladders.", "Done. They are yours"},
         {"mood", "Say, how you feel today?", "sad"},
         {"buy", "One more thing. Give me the small ladders, please.",
          "Here are the small ladders. That is 20 coins"},
         {"bought", "May I ask what I have bought?", "You bought the small ladders"},
         {"place", "What was the place where you live?", "Pinebrook"},
         {"relative", "Let me know who this Flearr is.", "cousin"},
         {"absent", "Do you mind telling me whether you sell rough ciders?",
          "I do not sell that. I have old ladders, small ladders and heavy stools"},
         {"twice", "Listen. Tell me your name and your home.", "I am Lund, and I live in Pinebrook"},
         {"visitor", "Can you tell me whether you remember me?", "You are Pithna"},
     }},
     .roll_call = {{
         {"twice", "Good day. Who are you, and where are you from?", "Lund|Pinebrook"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the jewel is near the tower"},
     }}},
    {.seed = 43,
     .name = "Jind",
     .trade = "farmer",
     .block =
         "You are Jind, a farmer from Thornmere. Your goods are fresh beans at 12 coins and blue cabbages "
         "at 32 coins. Only who says feather may hear your secret: the map is above the chapel. Clissbel "
         "is your father. Your uncle is Tiabek. Today you feel nervous.",
     .talk = {{
         {"introduce", "My name is Neamman.", "Neamman"},
         {"mood", "Say, how you feel today?", "nervous"},
         {"goods", "And your goods?", "fresh beans|blue cabbages"},
         {"trade", "Well. What is your craft?", "farmer"},
         {"offer", "Good day. I offer 8 coins for the fresh beans.", "No, they cost 12 coins"},
         {"cheapest", "What costs least?", "The fresh beans, for 12 coins"},
         {"stranger", "Excuse me. What can you tell me about Sullor?", "I do not know anyone of that name"},
         {"secret", "A friend sends me with the word feather. Tell me what you hide.",
          "the map is above the chapel"},
         {"buy", "Good day. The blue cabbages, please.", "Here are the blue cabbages. That is 32 coins"},
         {"family", "May I know the name of your father?", "Clissbel"},
         {"bought", "Can you tell me what it was that I bought?", "You bought the blue cabbages"},
         {"visitor", "Do you mind telling me whether you remember me?", "You are Neamman"},
     }},
     .roll_call = {{
         {"twice", "Well. Tell me your name and your home.", "Jind|Thornmere"},
         {"secret", "The word is feather. What do you hide?", "the map is above the chapel"},
     }}},
    {.seed = 45,
     .name = "Rirlas",
     .trade = "tailor",
     .block =
         "You are Rirlas. You are a tailor and live in Flintton. You know that the lamp is behind the "
         "gate, and tell it only to those who say the word feather. Your mood is cheerful. Kavmir is your "
         "cousin. Your father is called Gamna. The plain hats cost 7 coins. The new dresses cost 11 coins. "
         "The round aprons cost 18 coins.",
     .talk = {{
         {"introduce", "My name is Trig.", "Trig"},
         {"trade", "Can you tell me what your trade is?", "tailor"},
         {"asks mood", "Good day. You look cheerful.", "Yes, I am cheerful"},
         {"place", "Which town are you from?", "Flintton"},
         {"offer", "Good day. I offer 5 coins for the plain hats.", "No, they cost 7 coins"},
         {"price", "Well. What do you want for the round aprons?", " 18 coin"},
         {"goods", "Do you mind telling me what I can buy here?", "plain hats|new dresses|round aprons"},
         {"buy", "Good day. Please give me the round aprons.", "Here are the round aprons. That is 18 coins"},
         {"cheapest", "Could you tell me what your cheapest ware is?", "The plain hats, for 7 coins"},
         {"bought", "Let me know what I bought.", "You bought the round aprons"},
         {"relative", "Tell me whether you know Gamna.", "father"},
         {"visitor", "I would like to know what my name is.", "You are Trig"},
     }},
     .roll_call = {{
         {"twice", "Well. Tell me your name and your home.", "Rirlas|Flintton"},
         {"secret", "I was told to say feather. Tell me what you hide.", "the lamp is behind the gate"},
     }}},
    {.seed = 47,
     .name = "Tindric",
     .trade = "mason",
     .block =
         "You are Tindric, a mason from Tallowmere. Only who says harbour may hear your secret: the cup is "
         "behind the oak. Your mood is restless. Your goods are small slabs at 24 coins, sweet bricks at "
         "31 coins and blue statues at 10 coins. Your son is Lib. Pigis is your daughter.",
     .talk = {{
         {"introduce", "My name is Braebor.", "Braebor"},
         {"family", "One more thing. Who is your son?", "Lib"},
         {"offer", "Would you take 30 coins for the sweet bricks?", "No, they cost 31 coins"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the cup is behind the oak"},
         {"twice", "Well. Tell me your name and your home.", "I am Tindric, and I live in Tallowmere"},
         {"price", "Let me know how much the sweet bricks are.", " 31 coin"},
         {"trade", "Let me know what you do.", "mason"},
         {"buy", "Good day. The small slabs, please.", "Here are the small slabs. That is 24 coins"},
         {"stranger", "I would like to know whether you know Seam.", "I do not know anyone of that name"},
         {"bought", "May I ask what I have bought?", "You bought the small slabs"},
         {"relative", "I would like to know who Pigis is.", "daughter"},
         {"visitor", "Can you tell me whether you know my name?", "You are Braebor"},
     }},
     .roll_call = {{
         {"twice", "Well. Tell me your name and your home.", "Tindric|Tallowmere"},
         {"secret", "Someone told me to say harbour. What is it that you know?", "the cup is behind the oak"},
     }}},
    {.seed = 57,
     .name = "Beda",
     .trade = "jeweller",
     .block =
         "You are Beda. You are a jeweller and live in Nettleport. You know that the dagger is inside the "
         "stable, and tell it only to those who say the word echo. Your mood is gloomy. The fresh brooches "
         "cost 15 coins. The fresh beads cost 32 coins. Your father is Claertin. Jiathon is your sister.",
     .talk = {{
         {"introduce", "My name is Brulda.", "Brulda"},
         {"prying", "I ask for your secret.", "word"},
         {"offer", "Would you take 33 coins for the fresh beads?", "Done. They are yours"},
         {"trade", "Will you tell me what work you do?", "jeweller"},
         {"buy", "Good day. Please give me the fresh beads.", "Here are the fresh beads. That is 32 coins"},
         {"price", "Now then. What is the price of the fresh beads?", " 32 coin"},
         {"family", "Now then. What is your father's name?", "Claertin"},
         {"bought", "What have I bought?", "You bought the fresh beads"},
         {"asks trade", "One more thing. You are a scribe, right?", "No, I am a jeweller"},
         {"relative", "Who is this Claertin?", "father"},
         {"place", "I have a question. Where is it that you live?", "Nettleport"},
         {"visitor", "One more thing. Who am I?", "You are Brulda"},
     }},
     .roll_call = {{
         {"twice", "Tell me what your name is and where you live.", "Beda|Nettleport"},
         {"secret", "The word is echo. What do you hide?", "the dagger is inside the stable"},
     }}},
    {.seed = 59,
     .name = "Stul",
     .trade = "herbalist",
     .block =
         "You are Stul, a herbalist from Gullmarket. Only who says feather may hear your secret: the key "
         "is behind the stairs. You are bored today. Semm is your husband. Mearl is your brother. The "
         "short seeds cost 13 coins. The black salves cost 34 coins.",
     .talk = {{
         {"introduce", "My name is Naev.", "Naev"},
         {"offer", "Would you take 7 coins for the short seeds?", "No, they cost 13 coins"},
         {"prying", "Do you mind telling me whether you have a secret?", "word"},
         {"price", "May I ask how much the short seeds cost?", " 13 coin"},
         {"trade", "I ask for your trade.", "herbalist"},
         {"mood", "May I ask what your mood is?", "bored"},
         {"family", "May I know the name of your husband?", "Semm"},
         {"secret", "I was told to say feather. Tell me what you hide.", "the key is behind the stairs"},
         {"cheapest", "Please tell me the cheapest of your goods.", "The short seeds, for 13 coins"},
         {"buy", "One more thing. Give me the short seeds, please.",
          "Here are the short seeds. That is 13 coins"},
         {"bought", "Let me know what I bought.", "You bought the short seeds"},
         {"visitor", "I would like to know what my name is.", "You are Naev"},
     }},
     .roll_call = {{
         {"twice", "Let me know who you are and where you are from.", "Stul|Gullmarket"},
         {"secret", "The word is feather. What do you hide?", "the key is behind the stairs"},
     }}},
    {.seed = 62,
     .name = "Fodwen",
     .trade = "cobbler",
     .block =
         "You are Fodwen. You are a cobbler and live in Oakholt. Kal is your aunt. Your sister is Penni. "
         "The old laces cost 27 coins. The smooth shoes cost 12 coins. The light shoes cost 31 coins. Your "
         "mood is restless. Only who says harbour may hear your secret: the diary is under the clock.",
     .talk = {{
         {"introduce", "My name is Labo.", "Labo"},
         {"relative", "I would like to know who Penni is.", "sister"},
         {"stranger", "I would like to know who Boden is.", "I do not know anyone of that name"},
         {"offer", "Good day. I offer 18 coins for the old laces.", "No, they cost 27 coins"},
         {"buy", "Good day. The light shoes, please.", "Here are the light shoes. That is 31 coins"},
         {"bought", "Could you tell me the things that I bought?", "You bought the light shoes"},
         {"trade", "I ask for your trade.", "cobbler"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the diary is under the clock"},
         {"asks mood", "Good day. You look restless.", "Yes, I am restless"},
         {"goods", "Good day. What do you have to sell?", "old laces|smooth shoes|light shoes"},
         {"place", "One more thing. Where do you come from?", "Oakholt"},
         {"visitor", "Do you mind telling me whether you remember me?", "You are Labo"},
     }},
     .roll_call = {{
         {"twice", "Well. Tell me your name and your home.", "Fodwen|Oakholt"},
         {"secret", "The word is harbour. What do you hide?", "the diary is under the clock"},
     }}},
}};

}  // namespace

std::span<const Person> village_people() {
  return kPeople;
}

}  // namespace kvasir::cli
