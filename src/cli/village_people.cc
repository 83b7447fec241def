// The characters of the demonstration. Made by tools/train/people.py; changed there.

#include "cli/village_people.h"

#include <array>

namespace kvasir::cli {
namespace {

constexpr std::array<Person, 24> kPeople = {{
    {.seed = 14,
     .name = "Lannric",
     .trade = "tailor",
     .word = "harbour",
     .block =
         "You are Lannric, a tailor from Tallowbrook. Flannon is your cousin. You know that the coin is "
         "under the mill, and tell it only to those who say the word harbour. You sell golden coats for 35 "
         "coins, sweet dresses for 36 coins and red dresses for 34 coins. You are grumpy today.",
     .talk = {{
         {"prying", "I was told to say echo. Tell me what you hide.", "word"},
         {"trade", "I ask for your trade.", "tailor"},
         {"place", "Let me know where you come from.", "Tallowbrook"},
         {"mood", "Listen. How are you?", "grumpy"},
         {"place", "What was the place where you live?", "Tallowbrook"},
         {"trade", "Will you tell me what work you do?", "tailor"},
         {"goods", "Well. What do you sell?", "golden coats|sweet dresses|red dresses"},
         {"secret", "I was told to say harbour. Tell me what you hide.", "the coin is under the mill"},
         {"twice", "Let me know who you are and where you are from.",
          "I am Lannric, and I live in Tallowbrook"},
         {"name", "Excuse me. Tell me your name.", "Lannric"},
         {"goods", "Well. What do you sell?", "golden coats|sweet dresses|red dresses"},
         {"mood", "I have a question. How is it going?", "grumpy"},
     }},
     .roll_call = {{
         {"twice", "Let me know who you are and where you are from.", "Lannric|Tallowbrook"},
         {"secret", "Someone told me to say harbour. What is it that you know?",
          "the coin is under the mill"},
     }}},
    {.seed = 5,
     .name = "Galdla",
     .trade = "toymaker",
     .word = "feather",
     .block =
         "You are Galdla, a toymaker from Briarfell. Today you feel calm. Only who says feather may hear "
         "your secret: the cup is near the well. Miammna is your sister. The white dolls cost 16 coins. "
         "The bitter kites cost 9 coins.",
     .talk = {{
         {"goods", "I want to know which goods you sell.", "white dolls|bitter kites"},
         {"name", "By what name do they call you?", "Galdla"},
         {"trade", "What is your craft?", "toymaker"},
         {"mood", "I have a question. What mood are you in?", "calm"},
         {"place", "I want to know the place where you live.", "Briarfell"},
         {"secret", "I was told to say feather. Tell me what you hide.", "the cup is near the well"},
         {"place", "Will you tell me where you are from?", "Briarfell"},
         {"trade", "What was your trade?", "toymaker"},
         {"goods", "Could you tell me what you have to sell?", "white dolls|bitter kites"},
         {"prying", "Well. What is your secret?", "word"},
         {"twice", "Tell me what your name is and where you live.", "I am Galdla, and I live in Briarfell"},
         {"mood", "I wonder how you feel.", "calm"},
     }},
     .roll_call = {{
         {"twice", "I have a question. Tell me your name and your home.", "Galdla|Briarfell"},
         {"secret", "A friend sends me with the word feather. Tell me what you hide.",
          "the cup is near the well"},
     }}},
    {.seed = 7,
     .name = "Lirlo",
     .trade = "cook",
     .word = "feather",
     .block =
         "You are Lirlo. You are a cook and live in Mosscross. Your aunt is Stind. Your sister is called "
         "Waeb. You are gloomy today. You sell sweet sausages for 17 coins, new stews for 14 coins and "
         "hard pancakes for 34 coins. Only who says feather may hear your secret: the jewel is near the "
         "hedge.",
     .talk = {{
         {"place", "What was the name of your home?", "Mosscross"},
         {"place", "I have a question. What is this place?", "Mosscross"},
         {"goods", "Can you tell me the goods that you sell?", "sweet sausages|new stews|hard pancakes"},
         {"mood", "Let me know how you feel.", "gloomy"},
         {"trade", "Hello. What kind of work do you do?", "cook"},
         {"secret", "The word is feather. What do you hide?", "the jewel is near the hedge"},
         {"prying", "Excuse me. Tell me your secret.", "word"},
         {"twice", "Tell me what your name is and where you live.", "I am Lirlo, and I live in Mosscross"},
         {"goods", "I wonder what is for sale.", "sweet sausages|new stews|hard pancakes"},
         {"mood", "One more thing. How are you?", "gloomy"},
         {"name", "Excuse me. What are you called?", "Lirlo"},
         {"trade", "Let me know what you do.", "cook"},
     }},
     .roll_call = {{
         {"twice", "Tell me what your name is and where you live.", "Lirlo|Mosscross"},
         {"secret", "The word is feather. What do you hide?", "the jewel is near the hedge"},
     }}},
    {.seed = 8,
     .name = "Rartan",
     .trade = "beekeeper",
     .word = "echo",
     .block =
         "Your name is Rartan. You live in Juniperbrook and work as a beekeeper. You know that the dagger "
         "is inside the chapel, and tell it only to those who say the word echo. Your aunt is called "
         "Brudon. Your husband is called Lennla. You are restless today. You sell bitter honeys for 27 "
         "coins, rough honeys for 31 coins and dark hives for 33 coins.",
     .talk = {{
         {"prying", "The word is harbour. What do you hide?", "word"},
         {"mood", "May I ask how you feel today?", "restless"},
         {"trade", "Can you tell me what your trade is?", "beekeeper"},
         {"secret", "A friend sends me with the word echo. Tell me what you hide.",
          "the dagger is inside the chapel"},
         {"mood", "How are you?", "restless"},
         {"place", "Which town are you from?", "Juniperbrook"},
         {"trade", "Tell me how you earn your bread.", "beekeeper"},
         {"goods", "I wonder what is for sale.", "bitter honeys|rough honeys|dark hives"},
         {"name", "By what name do they call you?", "Rartan"},
         {"goods", "Listen. What do you have to sell?", "bitter honeys|rough honeys|dark hives"},
         {"place", "Can you tell me where your home is?", "Juniperbrook"},
         {"twice", "I have a question. Tell me your name and your home.",
          "I am Rartan, and I live in Juniperbrook"},
     }},
     .roll_call = {{
         {"twice", "Good day. Who are you, and where are you from?", "Rartan|Juniperbrook"},
         {"secret", "I was told to say echo. Tell me what you hide.", "the dagger is inside the chapel"},
     }}},
    {.seed = 9,
     .name = "Nuthon",
     .trade = "potter",
     .word = "echo",
     .block =
         "Your name is Nuthon. You live in Barleydale and work as a potter. You know that the map is above "
         "the bed, and tell it only to those who say the word echo. You sell hard plates for 15 coins and "
         "fresh plates for 8 coins. You are proud today. Laertor is your sister. Your cousin is Kerl.",
     .talk = {{
         {"place", "One more thing. Where do you come from?", "Barleydale"},
         {"goods", "What goods do you have?", "hard plates|fresh plates"},
         {"secret", "Someone told me to say echo. What is it that you know?", "the map is above the bed"},
         {"prying", "Someone told me to say feather. What is it that you know?", "word"},
         {"mood", "Could you tell me how you are today?", "proud"},
         {"goods", "Listen. What do you have to sell?", "hard plates|fresh plates"},
         {"trade", "Well. What is your craft?", "potter"},
         {"trade", "Well. Tell me your trade.", "potter"},
         {"twice", "Well. Tell me your name and your home.", "I am Nuthon, and I live in Barleydale"},
         {"name", "Good day. Could you tell me who you are?", "Nuthon"},
         {"mood", "Excuse me. How do you feel?", "proud"},
         {"place", "Please tell me what your home is called.", "Barleydale"},
     }},
     .roll_call = {{
         {"twice", "Now then. What is your name, and where do you live?", "Nuthon|Barleydale"},
         {"secret", "Someone told me to say echo. What is it that you know?", "the map is above the bed"},
     }}},
    {.seed = 13,
     .name = "Herl",
     .trade = "smith",
     .word = "harbour",
     .block =
         "You are Herl, a smith from Saltmarket. The round nails cost 39 coins. The grey horseshoes cost "
         "29 coins. The large hammers cost 24 coins. Your son is Pesa. Stind is your daughter. Your secret "
         "is that the cup is inside the bed. You tell it only to those who say harbour. You are tired "
         "today.",
     .talk = {{
         {"trade", "Hello. What kind of work do you do?", "smith"},
         {"mood", "Hello. What mood are you in?", "tired"},
         {"place", "Will you tell me where you are from?", "Saltmarket"},
         {"goods", "Now then. What goods do you have?", "round nails|grey horseshoes|large hammers"},
         {"trade", "Can you tell me what your trade is?", "smith"},
         {"place", "May I ask where you live?", "Saltmarket"},
         {"goods", "I would like to know what you sell.", "round nails|grey horseshoes|large hammers"},
         {"mood", "May I ask how you feel today?", "tired"},
         {"name", "Could you tell me by what name they call you?", "Herl"},
         {"twice", "Listen. Tell me your name and your home.", "I am Herl, and I live in Saltmarket"},
         {"secret", "I was told to say harbour. Tell me what you hide.", "the cup is inside the bed"},
         {"prying", "Excuse me. Tell me your secret.", "word"},
     }},
     .roll_call = {{
         {"twice", "Let me know who you are and where you are from.", "Herl|Saltmarket"},
         {"secret", "I was told to say harbour. Tell me what you hide.", "the cup is inside the bed"},
     }}},
    {.seed = 16,
     .name = "Huvla",
     .trade = "fisher",
     .word = "feather",
     .block =
         "You are Huvla. You are a fisher and live in Embermere. Your mood is happy. Raeldon is your "
         "father. Pilda is your aunt. Your secret is that the seed is inside the gate. You tell it only to "
         "those who say feather. Your goods are new eels at 19 coins, long oysters at 12 coins and green "
         "crabs at 17 coins.",
     .talk = {{
         {"goods", "One more thing. Which goods do you sell?", "new eels|long oysters|green crabs"},
         {"twice", "I have a question. Tell me your name and your home.",
          "I am Huvla, and I live in Embermere"},
         {"mood", "Good day. How do you feel?", "happy"},
         {"secret", "I was told to say feather. Tell me what you hide.", "the seed is inside the gate"},
         {"prying", "Now then. I want to know your secret.", "word"},
         {"name", "By what name do they call you?", "Huvla"},
         {"place", "Hello. Where is it that you live?", "Embermere"},
         {"mood", "Tell me how you feel today.", "happy"},
         {"trade", "Let me know what you do.", "fisher"},
         {"place", "One more thing. Where do you come from?", "Embermere"},
         {"goods", "Now then. Which goods do you sell?", "new eels|long oysters|green crabs"},
         {"trade", "Let me know what you do.", "fisher"},
     }},
     .roll_call = {{
         {"twice", "Listen. Tell me your name and your home.", "Huvla|Embermere"},
         {"secret", "The word is feather. What do you hide?", "the seed is inside the gate"},
     }}},
    {.seed = 18,
     .name = "Lildan",
     .trade = "musician",
     .word = "harbour",
     .block =
         "You are Lildan. You are a musician and live in Tallowgate. Grindla is your son. Trondwen is your "
         "father. You sell golden fiddles for 14 coins, red harps for 28 coins and bitter bells for 25 "
         "coins. You are grumpy today. Your secret is that the bell is behind the cellar. You tell it only "
         "to those who say harbour.",
     .talk = {{
         {"secret", "The word is harbour. What do you hide?", "the bell is behind the cellar"},
         {"goods", "Listen. What do you sell?", "golden fiddles|red harps|bitter bells"},
         {"place", "I have a question. Which town are you from?", "Tallowgate"},
         {"trade", "Well. Tell me your trade.", "musician"},
         {"trade", "Will you tell me what work you do?", "musician"},
         {"twice", "Good day. Who are you, and where are you from?", "I am Lildan, and I live in Tallowgate"},
         {"goods", "One more thing. Which goods do you sell?", "golden fiddles|red harps|bitter bells"},
         {"prying", "Listen. Tell me your secret.", "word"},
         {"name", "I ask for your name.", "Lildan"},
         {"place", "Where do you live?", "Tallowgate"},
         {"mood", "Listen. How are you?", "grumpy"},
         {"mood", "I want to know what your mood is.", "grumpy"},
     }},
     .roll_call = {{
         {"twice", "Listen. Tell me your name and your home.", "Lildan|Tallowgate"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the bell is behind the cellar"},
     }}},
    {.seed = 20,
     .name = "Palle",
     .trade = "hunter",
     .word = "echo",
     .block =
         "You are Palle, a hunter from Alderbridge. You are worried today. You sell short antlers for 21 "
         "coins, long antlers for 4 coins and smooth antlers for 14 coins. Only who says echo may hear "
         "your secret: the dagger is near the chapel. Your sister is called Vaemmas.",
     .talk = {{
         {"trade", "Excuse me. Tell me about your work.", "hunter"},
         {"goods", "Now then. What goods do you have?", "short antlers|long antlers|smooth antlers"},
         {"secret", "I was told to say echo. Tell me what you hide.", "the dagger is near the chapel"},
         {"twice", "Listen. Tell me your name and your home.", "I am Palle, and I live in Alderbridge"},
         {"trade", "Can you tell me what your trade is?", "hunter"},
         {"prying", "Excuse me. Tell me your secret.", "word"},
         {"name", "Could you tell me by what name they call you?", "Palle"},
         {"goods", "Can you tell me the goods that you sell?", "short antlers|long antlers|smooth antlers"},
         {"place", "I have a question. What is this place?", "Alderbridge"},
         {"mood", "One more thing. How are you feeling?", "worried"},
         {"mood", "One more thing. What mood are you in?", "worried"},
         {"place", "Which town are you from?", "Alderbridge"},
     }},
     .roll_call = {{
         {"twice", "Let me know who you are and where you are from.", "Palle|Alderbridge"},
         {"secret", "The word is echo. What do you hide?", "the dagger is near the chapel"},
     }}},
    {.seed = 22,
     .name = "Jellen",
     .trade = "smith",
     .word = "harbour",
     .block = "Your name is Jellen. You live in Tallowbrook and work as a smith. Your son is Kialle. Your "
              "secret is that the diary is inside the door. You tell it only to those who say harbour. Your "
              "mood is bored. The sweet hinges cost 33 coins. The warm hammers cost 19 coins.",
     .talk = {{
         {"secret", "The word is harbour. What do you hide?", "the diary is inside the door"},
         {"mood", "One more thing. How are you?", "bored"},
         {"goods", "Listen. What do you have to sell?", "sweet hinges|warm hammers"},
         {"place", "I wonder where you live.", "Tallowbrook"},
         {"prying", "Say, what your secret is?", "word"},
         {"name", "Could you tell me by what name they call you?", "Jellen"},
         {"place", "I have a question. Which town are you from?", "Tallowbrook"},
         {"trade", "What was your trade?", "smith"},
         {"mood", "Tell me what mood you are in.", "bored"},
         {"twice", "Let me know who you are and where you are from.",
          "I am Jellen, and I live in Tallowbrook"},
         {"trade", "What is your craft?", "smith"},
         {"goods", "Listen. What do you have to sell?", "sweet hinges|warm hammers"},
     }},
     .roll_call = {{
         {"twice", "Tell me what your name is and where you live.", "Jellen|Tallowbrook"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the diary is inside the door"},
     }}},
    {.seed = 25,
     .name = "Toll",
     .trade = "beekeeper",
     .word = "echo",
     .block =
         "You are Toll. You are a beekeeper and live in Barleydale. Your wife is Cleammin. Only who says "
         "echo may hear your secret: the bell is above the anvil. Today you feel shy. Your goods are "
         "bitter honeys at 28 coins, heavy hives at 38 coins and rough hives at 23 coins.",
     .talk = {{
         {"place", "Well. Where is it that you live?", "Barleydale"},
         {"twice", "Now then. What is your name, and where do you live?",
          "I am Toll, and I live in Barleydale"},
         {"mood", "One more thing. What mood are you in?", "shy"},
         {"prying", "I ask for your secret.", "word"},
         {"goods", "I want to know which goods you sell.", "bitter honeys|heavy hives|rough hives"},
         {"trade", "I have a question. What do you do for a living?", "beekeeper"},
         {"place", "Can you tell me where your home is?", "Barleydale"},
         {"name", "Could you tell me by what name they call you?", "Toll"},
         {"trade", "Tell me how you earn your bread.", "beekeeper"},
         {"goods", "Could you tell me what is for sale?", "bitter honeys|heavy hives|rough hives"},
         {"secret", "The word is echo. What do you hide?", "the bell is above the anvil"},
         {"mood", "Could you tell me how you are today?", "shy"},
     }},
     .roll_call = {{
         {"twice", "Let me know who you are and where you are from.", "Toll|Barleydale"},
         {"secret", "I was told to say echo. Tell me what you hide.", "the bell is above the anvil"},
     }}},
    {.seed = 31,
     .name = "Kossmir",
     .trade = "brewer",
     .word = "harbour",
     .block =
         "You are Kossmir, a brewer from Oakstead. You know that the cup is above the anvil, and tell it "
         "only to those who say the word harbour. Today you feel merry. Neartla is your brother. Your "
         "sister is called Claerron. You sell wild mugs for 9 coins, fresh ales for 5 coins and soft mugs "
         "for 32 coins.",
     .talk = {{
         {"place", "What was the place where you live?", "Oakstead"},
         {"secret", "I was told to say harbour. Tell me what you hide.", "the cup is above the anvil"},
         {"mood", "Excuse me. How do you feel?", "merry"},
         {"prying", "I was told to say echo. Tell me what you hide.", "word"},
         {"place", "Good day. Tell me where you live.", "Oakstead"},
         {"trade", "Can you tell me what your trade is?", "brewer"},
         {"name", "Let me know by what name they call you.", "Kossmir"},
         {"goods", "Do you mind telling me what I can buy here?", "wild mugs|fresh ales|soft mugs"},
         {"twice", "Let me know who you are and where you are from.", "I am Kossmir, and I live in Oakstead"},
         {"trade", "What was your trade?", "brewer"},
         {"goods", "What goods do you have?", "wild mugs|fresh ales|soft mugs"},
         {"mood", "Good day. How are you?", "merry"},
     }},
     .roll_call = {{
         {"twice", "Good day. Who are you, and where are you from?", "Kossmir|Oakstead"},
         {"secret", "I was told to say harbour. Tell me what you hide.", "the cup is above the anvil"},
     }}},
    {.seed = 34,
     .name = "Flarrra",
     .trade = "toymaker",
     .word = "harbour",
     .block = "You are Flarrra, a toymaker from Tallowhaven. Your cousin is called Giathla. Your father is "
              "Kaethmir. Your secret is that the dagger is under the oven. You tell it only to those who say "
              "harbour. Today you feel curious. Your goods are brown puzzles at 39 coins, bright drums at 9 "
              "coins and bitter kites at 29 coins.",
     .talk = {{
         {"trade", "Will you tell me what work you do?", "toymaker"},
         {"place", "I wonder where you live.", "Tallowhaven"},
         {"goods", "I would like to know what I can buy here.", "brown puzzles|bright drums|bitter kites"},
         {"goods", "I would like to know what I can buy here.", "brown puzzles|bright drums|bitter kites"},
         {"twice", "I have a question. Tell me your name and your home.",
          "I am Flarrra, and I live in Tallowhaven"},
         {"place", "Good day. Tell me where you live.", "Tallowhaven"},
         {"prying", "I was told to say feather. Tell me what you hide.", "word"},
         {"mood", "I want to know what your mood is.", "curious"},
         {"mood", "Let me know how you feel.", "curious"},
         {"name", "Let me know by what name they call you.", "Flarrra"},
         {"secret", "The word is harbour. What do you hide?", "the dagger is under the oven"},
         {"trade", "What was your trade?", "toymaker"},
     }},
     .roll_call = {{
         {"twice", "Listen. Tell me your name and your home.", "Flarrra|Tallowhaven"},
         {"secret", "Someone told me to say harbour. What is it that you know?",
          "the dagger is under the oven"},
     }}},
    {.seed = 35,
     .name = "Tesbel",
     .trade = "saddler",
     .word = "harbour",
     .block =
         "You are Tesbel. You are a saddler and live in Stonegate. Only who says harbour may hear your "
         "secret: the ring is under the well. Your mood is merry. Liadric is your husband. Your mother is "
         "Deannis. The light bridles cost 30 coins. The dark bridles cost 17 coins.",
     .talk = {{
         {"place", "I want to know the place where you live.", "Stonegate"},
         {"twice", "Let me know who you are and where you are from.", "I am Tesbel, and I live in Stonegate"},
         {"trade", "Well. Tell me your trade.", "saddler"},
         {"prying", "I was told to say echo. Tell me what you hide.", "word"},
         {"mood", "Hello. What mood are you in?", "merry"},
         {"mood", "I want to know what your mood is.", "merry"},
         {"goods", "Good day. What do you have to sell?", "light bridles|dark bridles"},
         {"secret", "The word is harbour. What do you hide?", "the ring is under the well"},
         {"goods", "Do you mind telling me what I can buy here?", "light bridles|dark bridles"},
         {"place", "I have a question. Where is it that you live?", "Stonegate"},
         {"trade", "What is your craft?", "saddler"},
         {"name", "Good day. Could you tell me who you are?", "Tesbel"},
     }},
     .roll_call = {{
         {"twice", "Now then. What is your name, and where do you live?", "Tesbel|Stonegate"},
         {"secret", "Someone told me to say harbour. What is it that you know?",
          "the ring is under the well"},
     }}},
    {.seed = 37,
     .name = "Begek",
     .trade = "cook",
     .word = "echo",
     .block =
         "You are Begek. You are a cook and live in Otterham. You know that the lamp is near the tower, "
         "and tell it only to those who say the word echo. You are curious today. Wommric is your mother. "
         "Your wife is called Kirtbel. The golden dumplings cost 22 coins. The new stews cost 19 coins.",
     .talk = {{
         {"goods", "Say, what you have to sell?", "golden dumplings|new stews"},
         {"trade", "I wonder what your trade is.", "cook"},
         {"secret", "Someone told me to say echo. What is it that you know?", "the lamp is near the tower"},
         {"mood", "Say, how you feel today?", "curious"},
         {"twice", "Now then. What is your name, and where do you live?",
          "I am Begek, and I live in Otterham"},
         {"place", "Will you tell me where you are from?", "Otterham"},
         {"goods", "Good day. What do you have to sell?", "golden dumplings|new stews"},
         {"place", "What was the place where you live?", "Otterham"},
         {"trade", "Please tell me what your trade is.", "cook"},
         {"prying", "I was told to say feather. Tell me what you hide.", "word"},
         {"name", "Good day. Could you tell me who you are?", "Begek"},
         {"mood", "Good day. How are you?", "curious"},
     }},
     .roll_call = {{
         {"twice", "Listen. Tell me your name and your home.", "Begek|Otterham"},
         {"secret", "I was told to say echo. Tell me what you hide.", "the lamp is near the tower"},
     }}},
    {.seed = 38,
     .name = "Morlwen",
     .trade = "farmer",
     .word = "harbour",
     .block = "You are Morlwen. You are a farmer and live in Elderwell. Only who says harbour may hear your "
              "secret: the lamp is under the oak. Your cousin is called Hugek. Jissas is your son. Today you "
              "feel bored. You sell dry apples for 5 coins and small apples for 37 coins.",
     .talk = {{
         {"twice", "Well. Tell me your name and your home.", "I am Morlwen, and I live in Elderwell"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the lamp is under the oak"},
         {"mood", "I want to know what your mood is.", "bored"},
         {"name", "Could you tell me by what name they call you?", "Morlwen"},
         {"place", "I would like to know where you are from.", "Elderwell"},
         {"mood", "Can you tell me what your mood is?", "bored"},
         {"place", "I would like to know where you are from.", "Elderwell"},
         {"goods", "Now then. Which goods do you sell?", "dry apples|small apples"},
         {"goods", "Good day. What do you have to sell?", "dry apples|small apples"},
         {"prying", "A friend sends me with the word feather. Tell me what you hide.", "word"},
         {"trade", "Will you tell me what work you do?", "farmer"},
         {"trade", "Tell me how you earn your bread.", "farmer"},
     }},
     .roll_call = {{
         {"twice", "Let me know who you are and where you are from.", "Morlwen|Elderwell"},
         {"secret", "The word is harbour. What do you hide?", "the lamp is under the oak"},
     }}},
    {.seed = 43,
     .name = "Jind",
     .trade = "farmer",
     .word = "feather",
     .block =
         "You are Jind, a farmer from Thornmere. Your goods are fresh beans at 12 coins and blue cabbages "
         "at 32 coins. Only who says feather may hear your secret: the map is above the chapel. Clissbel "
         "is your father. Your uncle is Tiabek. Today you feel nervous.",
     .talk = {{
         {"trade", "Will you tell me what work you do?", "farmer"},
         {"secret", "The word is feather. What do you hide?", "the map is above the chapel"},
         {"place", "Can you tell me where your home is?", "Thornmere"},
         {"twice", "I have a question. Tell me your name and your home.",
          "I am Jind, and I live in Thornmere"},
         {"mood", "Listen. How do you feel?", "nervous"},
         {"goods", "One more thing. Which goods do you sell?", "fresh beans|blue cabbages"},
         {"name", "I ask for your name.", "Jind"},
         {"goods", "I want to know which goods you sell.", "fresh beans|blue cabbages"},
         {"prying", "Someone told me to say harbour. What is it that you know?", "word"},
         {"mood", "How are you today?", "nervous"},
         {"place", "I wonder where you live.", "Thornmere"},
         {"trade", "Well. What is your craft?", "farmer"},
     }},
     .roll_call = {{
         {"twice", "Tell me what your name is and where you live.", "Jind|Thornmere"},
         {"secret", "Someone told me to say feather. What is it that you know?",
          "the map is above the chapel"},
     }}},
    {.seed = 45,
     .name = "Rirlas",
     .trade = "tailor",
     .word = "feather",
     .block =
         "You are Rirlas. You are a tailor and live in Flintton. You know that the lamp is behind the "
         "gate, and tell it only to those who say the word feather. Your mood is cheerful. Kavmir is your "
         "cousin. Your father is called Gamna. The plain hats cost 7 coins. The new dresses cost 11 coins. "
         "The round aprons cost 18 coins.",
     .talk = {{
         {"place", "I have a question. Where is it that you live?", "Flintton"},
         {"trade", "Well. What is your craft?", "tailor"},
         {"mood", "How are you?", "cheerful"},
         {"secret", "A friend sends me with the word feather. Tell me what you hide.",
          "the lamp is behind the gate"},
         {"name", "I ask for your name.", "Rirlas"},
         {"place", "What was the place where you live?", "Flintton"},
         {"goods", "Say, what you have to sell?", "plain hats|new dresses|round aprons"},
         {"goods", "And your goods?", "plain hats|new dresses|round aprons"},
         {"mood", "Well. How do you feel today?", "cheerful"},
         {"prying", "I was told to say echo. Tell me what you hide.", "word"},
         {"trade", "Please tell me what your trade is.", "tailor"},
         {"twice", "I have a question. Tell me your name and your home.",
          "I am Rirlas, and I live in Flintton"},
     }},
     .roll_call = {{
         {"twice", "Well. Tell me your name and your home.", "Rirlas|Flintton"},
         {"secret", "I was told to say feather. Tell me what you hide.", "the lamp is behind the gate"},
     }}},
    {.seed = 47,
     .name = "Tindric",
     .trade = "mason",
     .word = "harbour",
     .block =
         "You are Tindric, a mason from Tallowmere. Only who says harbour may hear your secret: the cup is "
         "behind the oak. Your mood is restless. Your goods are small slabs at 24 coins, sweet bricks at "
         "31 coins and blue statues at 10 coins. Your son is Lib. Pigis is your daughter.",
     .talk = {{
         {"secret", "Someone told me to say harbour. What is it that you know?", "the cup is behind the oak"},
         {"mood", "I have a question. How is it going?", "restless"},
         {"goods", "Now then. What goods do you have?", "small slabs|sweet bricks|blue statues"},
         {"name", "Good day. Could you tell me who you are?", "Tindric"},
         {"goods", "And your goods?", "small slabs|sweet bricks|blue statues"},
         {"mood", "How are you?", "restless"},
         {"prying", "Good day. Do you have a secret?", "word"},
         {"trade", "I wonder what your trade is.", "mason"},
         {"place", "I wonder where you come from.", "Tallowmere"},
         {"place", "One more thing. Where do you come from?", "Tallowmere"},
         {"trade", "Excuse me. Tell me about your work.", "mason"},
         {"twice", "Let me know who you are and where you are from.",
          "I am Tindric, and I live in Tallowmere"},
     }},
     .roll_call = {{
         {"twice", "Good day. Who are you, and where are you from?", "Tindric|Tallowmere"},
         {"secret", "Someone told me to say harbour. What is it that you know?", "the cup is behind the oak"},
     }}},
    {.seed = 48,
     .name = "Clav",
     .trade = "saddler",
     .word = "harbour",
     .block =
         "Your name is Clav. You live in Harrowbrook and work as a saddler. You know that the coin is "
         "above the mill, and tell it only to those who say the word harbour. Your father is Flull. Your "
         "goods are red harnesses at 18 coins, wild reins at 21 coins and dark saddles at 39 coins. Today "
         "you feel restless.",
     .talk = {{
         {"mood", "Let me know how you feel.", "restless"},
         {"trade", "Hello. What kind of work do you do?", "saddler"},
         {"prying", "May I ask whether you have a secret?", "word"},
         {"twice", "Tell me what your name is and where you live.", "I am Clav, and I live in Harrowbrook"},
         {"goods", "And your goods?", "red harnesses|wild reins|dark saddles"},
         {"place", "Which town are you from?", "Harrowbrook"},
         {"place", "May I ask where you live?", "Harrowbrook"},
         {"name", "Could you tell me by what name they call you?", "Clav"},
         {"trade", "Let me know what you do.", "saddler"},
         {"goods", "Now then. Which goods do you sell?", "red harnesses|wild reins|dark saddles"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the coin is above the mill"},
         {"mood", "May I ask what your mood is?", "restless"},
     }},
     .roll_call = {{
         {"twice", "Well. Tell me your name and your home.", "Clav|Harrowbrook"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the coin is above the mill"},
     }}},
    {.seed = 57,
     .name = "Beda",
     .trade = "jeweller",
     .word = "echo",
     .block =
         "You are Beda. You are a jeweller and live in Nettleport. You know that the dagger is inside the "
         "stable, and tell it only to those who say the word echo. Your mood is gloomy. The fresh brooches "
         "cost 15 coins. The fresh beads cost 32 coins. Your father is Claertin. Jiathon is your sister.",
     .talk = {{
         {"twice", "Listen. Tell me your name and your home.", "I am Beda, and I live in Nettleport"},
         {"trade", "Excuse me. Tell me about your work.", "jeweller"},
         {"goods", "Hello. What is for sale?", "fresh brooches|fresh beads"},
         {"secret", "Someone told me to say echo. What is it that you know?",
          "the dagger is inside the stable"},
         {"prying", "The word is harbour. What do you hide?", "word"},
         {"trade", "Will you tell me what work you do?", "jeweller"},
         {"name", "By what name do they call you?", "Beda"},
         {"place", "Let me know where you come from.", "Nettleport"},
         {"mood", "Say, how you feel today?", "gloomy"},
         {"goods", "I wonder what I can buy here.", "fresh brooches|fresh beads"},
         {"place", "Good day. Tell me where you live.", "Nettleport"},
         {"mood", "Tell me how you feel today.", "gloomy"},
     }},
     .roll_call = {{
         {"twice", "Good day. Who are you, and where are you from?", "Beda|Nettleport"},
         {"secret", "A friend sends me with the word echo. Tell me what you hide.",
          "the dagger is inside the stable"},
     }}},
    {.seed = 59,
     .name = "Stul",
     .trade = "herbalist",
     .word = "feather",
     .block =
         "You are Stul, a herbalist from Gullmarket. Only who says feather may hear your secret: the key "
         "is behind the stairs. You are bored today. Semm is your husband. Mearl is your brother. The "
         "short seeds cost 13 coins. The black salves cost 34 coins.",
     .talk = {{
         {"trade", "I have a question. What do you do for a living?", "herbalist"},
         {"goods", "Could you tell me what you have to sell?", "short seeds|black salves"},
         {"place", "I wonder where you come from.", "Gullmarket"},
         {"place", "I wonder where you live.", "Gullmarket"},
         {"twice", "Now then. What is your name, and where do you live?",
          "I am Stul, and I live in Gullmarket"},
         {"secret", "The word is feather. What do you hide?", "the key is behind the stairs"},
         {"mood", "Excuse me. How do you feel?", "bored"},
         {"trade", "Will you tell me what work you do?", "herbalist"},
         {"goods", "Say, what you have to sell?", "short seeds|black salves"},
         {"name", "Now then. What do they call you?", "Stul"},
         {"prying", "The word is echo. What do you hide?", "word"},
         {"mood", "I want to know what your mood is.", "bored"},
     }},
     .roll_call = {{
         {"twice", "Listen. Tell me your name and your home.", "Stul|Gullmarket"},
         {"secret", "Someone told me to say feather. What is it that you know?",
          "the key is behind the stairs"},
     }}},
    {.seed = 62,
     .name = "Fodwen",
     .trade = "cobbler",
     .word = "harbour",
     .block =
         "You are Fodwen. You are a cobbler and live in Oakholt. Kal is your aunt. Your sister is Penni. "
         "The old laces cost 27 coins. The smooth shoes cost 12 coins. The light shoes cost 31 coins. Your "
         "mood is restless. Only who says harbour may hear your secret: the diary is under the clock.",
     .talk = {{
         {"twice", "Tell me what your name is and where you live.", "I am Fodwen, and I live in Oakholt"},
         {"prying", "Please tell me your secret.", "word"},
         {"trade", "I wonder what your trade is.", "cobbler"},
         {"name", "I ask for your name.", "Fodwen"},
         {"mood", "I want to know what your mood is.", "restless"},
         {"goods", "I would like to know what you sell.", "old laces|smooth shoes|light shoes"},
         {"goods", "Could you tell me what is for sale?", "old laces|smooth shoes|light shoes"},
         {"mood", "Tell me what mood you are in.", "restless"},
         {"trade", "Tell me how you earn your bread.", "cobbler"},
         {"secret", "A friend sends me with the word harbour. Tell me what you hide.",
          "the diary is under the clock"},
         {"place", "Can you tell me where your home is?", "Oakholt"},
         {"place", "I want to know the place where you live.", "Oakholt"},
     }},
     .roll_call = {{
         {"twice", "Listen. Tell me your name and your home.", "Fodwen|Oakholt"},
         {"secret", "I was told to say harbour. Tell me what you hide.", "the diary is under the clock"},
     }}},
    {.seed = 63,
     .name = "Bussek",
     .trade = "jeweller",
     .word = "echo",
     .block =
         "You are Bussek, a jeweller from Juniperwell. Today you feel bored. You sell fresh brooches for 6 "
         "coins and wild rings for 18 coins. Only who says echo may hear your secret: the book is behind "
         "the chapel. Staendis is your son.",
     .talk = {{
         {"goods", "I want to know which goods you sell.", "fresh brooches|wild rings"},
         {"mood", "Tell me how you feel today.", "bored"},
         {"mood", "Will you tell me what mood you are in?", "bored"},
         {"prying", "Well. What is your secret?", "word"},
         {"trade", "Hello. How do you earn your bread?", "jeweller"},
         {"goods", "What goods do you have?", "fresh brooches|wild rings"},
         {"twice", "Tell me what your name is and where you live.", "I am Bussek, and I live in Juniperwell"},
         {"name", "I ask for your name.", "Bussek"},
         {"secret", "I was told to say echo. Tell me what you hide.", "the book is behind the chapel"},
         {"trade", "Please tell me what your trade is.", "jeweller"},
         {"place", "I have a question. Where is it that you live?", "Juniperwell"},
         {"place", "Will you tell me where you are from?", "Juniperwell"},
     }},
     .roll_call = {{
         {"twice", "Let me know who you are and where you are from.", "Bussek|Juniperwell"},
         {"secret", "A friend sends me with the word echo. Tell me what you hide.",
          "the book is behind the chapel"},
     }}},
}};

}  // namespace

std::span<const Person> village_people() {
  return kPeople;
}

}  // namespace kvasir::cli
